// Views of runs that a server would be hard to bring to: the run of the design's pictures, a run of a thousand nodes,
// a run with hostile texts. Times are relative to `now`.

const iso = (now, seconds) => new Date(now + seconds * 1000).toISOString();
const small = (value) => ({ bytes: JSON.stringify(value).length, value });

export function summary(now, fields = {}) {
  return {
    id: "run_01a1e2f476647000800000000000 89e7".replace(" ", ""), flow: "digital-human", flow_id: "flow_01a1", version: 7, version_id: "ver_01a1", status: "running",
    round: 1, node: "video_motion", step_count: 5, len: 23, labels: { team: "media" }, account: "acme", cost: { estimated: 1280, actual: 0 },
    parent: { run: "run_01a1e2f40000700080000000000041d0", node: "each/3" }, created_at: iso(now, -48.6), updated_at: iso(now, -1), ...fields,
  };
}

function node(id, kind, x, y, w, h, more = {}) {
  const key = id.split("/").pop();
  return { id, key, label: key, short: key, kind, word: more.word ?? kind, detail: more.detail ?? more.word ?? kind, path: `$.nodes.${key}`, start: false, box: false, x, y, w, h, ...more };
}

function edge(from, to, points, more = {}) {
  return { id: `${from}>${to}`, from, to, kind: "forward", when: "always", points, ...more };
}

function demoGraph() {
  const inner = { parent: "fan_out" };
  return {
    direction: "lr", form: "graph", width: 860, height: 340, more: false,
    nodes: [
      node("ingest", "call", 20, 126, 92, 44, { start: true, word: "executor", detail: "executor" }),
      node("validate", "choice", 140, 126, 96, 44),
      node("fan_out", "parallel", 280, 20, 184, 254, { box: true }),
      node("fan_out/video_motion", "call", 292, 52, 160, 44, { ...inner, word: "executor", detail: "executor" }),
      node("fan_out/audio_tts", "call", 292, 106, 160, 44, { ...inner, word: "executor", detail: "executor" }),
      node("fan_out/subtitles", "foreach", 292, 160, 160, 44, inner),
      node("fan_out/rights", "signal", 292, 216, 160, 44, { ...inner, word: "wait_event", detail: "wait_event" }),
      node("lipsync", "call", 500, 126, 96, 44, { word: "executor", detail: "executor" }),
      node("review", "approval", 628, 126, 92, 44),
      node("publish", "call", 756, 126, 84, 44, { word: "executor", detail: "executor" }),
      node("reject_notify", "call", 732, 282, 112, 44, { word: "executor", detail: "executor" }),
    ],
    edges: [
      edge("ingest", "validate", [[112, 148], [140, 148]]),
      edge("validate", "fan_out", [[236, 148], [280, 148]], { when: "action", action: "ok", label: "ok", short: "ok", label_box: { x: 246, y: 140, w: 18, h: 16 } }),
      edge("fan_out", "lipsync", [[464, 148], [500, 148]]), edge("lipsync", "review", [[596, 148], [628, 148]]), edge("review", "publish", [[720, 148], [756, 148]]),
      edge("validate", "reject_notify", [[190, 170], [190, 304], [732, 304]], { when: "action", action: "invalid", label: "invalid", short: "invalid", label_box: { x: 170, y: 206, w: 40, h: 16 } }),
      edge("review", "reject_notify", [[674, 170], [674, 258], [784, 258], [784, 282]], { when: "action", action: "rejected", label: "rejected", short: "rejected", label_box: { x: 650, y: 206, w: 48, h: 16 } }),
    ],
  };
}

function attempt(now, path, n, status, from, start, end, more = {}) {
  return {
    fence: more.fence, node: path, visit: more.visit ?? 1, attempt: n, status, kind: more.kind ?? "executor", service: more.service, worker: more.worker ?? "w-alpha",
    input: more.input ?? null, output: more.output ?? null, error: more.error ?? null, action: more.action ?? null,
    queued_at: iso(now, from), started_at: start === null ? null : iso(now, start), finished_at: end === null ? null : iso(now, end),
  };
}

/** The run of the pictures: one node retries, one fans out, one waits for a signal. */
export function demoView(now) {
  const overloaded = { kind: "upstream_unavailable", message: "HTTP 503: Model motion-2.1 is overloaded; try again in 20 s.", retryable: true, node: "fan_out/video_motion" };
  const input = small({ image: "asset://portraits/anna.png", seconds: 4, seed: 81733, lang: "zh-CN" });
  const video = { service: "video_motion", worker: "w-beta", input, error: overloaded, visit: 4 };
  const state = (status, start, end, more = {}) => ({ status, kind: "executor", attempts: 1, round: 1, started_at: iso(now, start), ...(end !== null && { finished_at: iso(now, end) }), ...more });
  return {
    seq: 23, run: summary(now), exec_mode: "all", start_node_ids: [], priority: "high", manual: false, budget: null,
    params: small({ portrait: "asset://portraits/anna.png", text: "good morning" }), shared: small({ portrait: "asset://portraits/anna.png" }), result: null,
    graph: demoGraph(), more_nodes: false, more_attempts: false, more_children: false,
    node_states: {
      ingest: state("completed", -48.6, -47.7), validate: state("completed", -47.7, -47.6, { kind: "choice", action: "ok" }),
      fan_out: state("running", -47.1, null, { kind: "parallel", branches: { total: 4, open: 3, failed: 0, waiting: 0 } }),
      "fan_out/video_motion": state("retrying", -47.1, null, { attempts: 2, error: overloaded }),
      "fan_out/audio_tts": state("completed", -46.5, -42.3), "fan_out/subtitles": state("running", -45, null, { kind: "foreach", branches: { total: 8, open: 2, failed: 0, waiting: 0 } }),
      "fan_out/rights": state("waiting", -47.1, null, { kind: "wait_event" }),
      lipsync: { status: "pending" }, review: { status: "pending", kind: "approval" }, publish: { status: "pending" }, reject_notify: { status: "skipped" },
    },
    attempts: [
      attempt(now, "ingest", 1, "ok", -48.6, -48.3, -47.7, { fence: 1, service: "ingest", input: small({ url: "asset://portraits/anna.png" }), output: small({ width: 1024, height: 1024 }) }),
      attempt(now, "validate", 1, "ok", -47.7, -47.7, -47.6, { action: "ok", worker: null }),
      attempt(now, "fan_out/video_motion", 1, "failed", -47.1, -45.4, -34.6, { ...video, fence: 2 }),
      attempt(now, "fan_out/video_motion", 1, "waiting", -34.6, -34.6, -29.7, { kind: "retry", visit: 4 }),
      attempt(now, "fan_out/video_motion", 2, "failed", -29.7, -29.1, -8.1, { ...video, fence: 5, output: small({ provider_job: "m-7f31c2", progress: 0.62 }) }),
      attempt(now, "fan_out/video_motion", 2, "waiting", -8.1, -8.1, null, { kind: "retry", visit: 4 }),
      attempt(now, "fan_out/audio_tts", 1, "ok", -46.9, -46.5, -42.3, { fence: 3, service: "audio_tts", output: small({ url: "asset://speech.mp3" }) }),
      attempt(now, "fan_out/subtitles", 1, "running", -47.1, -45, null, { fence: 4, service: "subtitles" }),
      attempt(now, "fan_out/rights", 1, "waiting", -47.1, -47.1, null, { kind: "wait_event" }),
    ],
    why: [
      { node: "fan_out/video_motion", waits_for: "retry", attempt: 2, after: "HTTP 503: Model motion-2.1 is overloaded", until: iso(now, 12), text: "the next attempt is made at …" },
      { node: "fan_out/rights", waits_for: "signal", key: "rights.cleared", text: "a signal `rights.cleared`", command: "windlass run signal …89e7 rights.cleared" },
      { node: "fan_out/subtitles", waits_for: "answer", service: "subtitles", attempt: 1, text: "a worker works on `subtitles`" },
    ],
    children: [],
  };
}

/** A run of `n` nodes in rows of 20, each linked to the next. */
export function bigView(now, n = 1000) {
  const view = demoView(now);
  const statuses = ["completed", "running", "failed", "waiting", "pending", "retrying", "skipped"];
  const nodes = [];
  const edges = [];
  const node_states = {};
  const attempts = [];
  for (let i = 0; i < n; i += 1) {
    const [column, row] = [i % 20, Math.floor(i / 20)];
    const id = `node_${i}`;
    nodes.push(node(id, "call", 20 + column * 180, 20 + row * 70, 140, 44, { start: i === 0, word: "executor", detail: "executor · resize" }));
    const status = i < n / 2 ? "completed" : statuses[i % statuses.length];
    node_states[id] = { status, kind: "executor", attempts: 1, started_at: iso(now, -n + i), ...(status === "completed" && { finished_at: iso(now, -n + i + 1) }) };
    if (status !== "pending" && status !== "skipped") attempts.push(attempt(now, id, 1, status === "completed" ? "ok" : status, -n + i, -n + i + 0.2, status === "completed" ? -n + i + 1 : null, { fence: i + 1, service: "resize" }));
    if (i % 20 !== 0) edges.push(edge(`node_${i - 1}`, id, [[20 + (column - 1) * 180 + 140, 42 + row * 70], [20 + column * 180, 42 + row * 70]]));
  }
  return { ...view, graph: { ...view.graph, width: 3640, height: 20 + Math.ceil(n / 20) * 70, nodes, edges }, node_states, attempts, why: [] };
}

/** Markup, another direction of writing, ten kilobytes without a space, and words that no release knows. */
export function hostileView(now) {
  const view = demoView(now);
  const markup = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>";
  const long = `${"x".repeat(10_000)}`;
  const right = "\u202Egnp.exe \u05D0\u05D1\u05D2 \u0627\u0644\u0639\u0631\u0628\u064A\u0629";
  view.run = { ...view.run, flow: markup, status: "compensating", account: right, node: long, labels: { [markup]: right, long }, error: { kind: markup, message: long, retryable: false, node: right } };
  view.graph.nodes[0] = { ...view.graph.nodes[0], label: long, short: `${long.slice(0, 9)}…`, kind: "portal" };
  view.graph.nodes[1] = { ...view.graph.nodes[1], label: markup, short: markup.slice(0, 10) };
  view.graph.nodes[7] = { ...view.graph.nodes[7], label: right, short: right.slice(0, 12) };
  view.node_states.ingest = { status: "quantum", title: markup, kind: long };
  view.attempts[0] = { ...view.attempts[0], status: "quantum", worker: markup, service: right, error: { kind: markup, message: long, retryable: false }, input: { bytes: 5_242_880, head: `{"a":"${markup}` } };
  view.why = [{ node: markup, waits_for: "eclipse", text: `${markup} ${long}` }];
  return view;
}
