import { expect, test } from "vitest";
import type { AttemptView, FlowGraph } from "../../api/console";
import type { WaitReason } from "../../api/openapi";
import { readingOrder } from "../../graph/names";
import { runWords } from "../../words/run";
import { changedKeys } from "./dialogs";
import { isRuntimeKey, partsOf, pathText } from "./state";
import { rowsOf, ticks } from "./timeline";
import { familyOfReason, short, whyText } from "./why";

const START = Date.UTC(2026, 0, 1);
const at = (ms: number | undefined) => (ms === undefined ? undefined : new Date(START + ms).toISOString());
const attempt = (node: string, n: number, status: string, queued: number | undefined, from: number | undefined, to?: number, more: Partial<AttemptView> = {}): AttemptView =>
  ({ node, visit: 1, attempt: n, status, kind: "task", input: { bytes: 4, value: null }, queued_at: at(queued) ?? "", started_at: at(from), finished_at: at(to), ...more });

test("an attempt is a queue wait and work; between two attempts lies the back-off", () => {
  const [row] = rowsOf([attempt("a", 1, "failed", 0, 100, 500), attempt("a", 2, "ok", 900, 950, 1200)], START);
  expect(row?.segments.map(({ kind, from, to }) => [kind, from, to])).toEqual([["queued", 0, 100], ["failed", 100, 500], ["backoff", 500, 900], ["queued", 900, 950], ["ok", 950, 1200]]);
  expect(row).toMatchObject({ from: 0, to: 1200 });
});

test("work that goes on has no end; a queued attempt has only its wait", () => {
  const rows = rowsOf([attempt("a", 1, "running", 0, 10), attempt("b", 1, "running", 20, undefined)], START);
  expect(rows.map((row) => row.segments.map(({ kind, to }) => [kind, to]))).toEqual([[["queued", 10], ["running", undefined]], [["queued", undefined]]]);
  expect(rows.map((row) => row.to)).toEqual([undefined, undefined]);
});

test("a back-off that goes on ends when the retry is due", () => {
  const why: WaitReason[] = [{ node: "a", waits_for: "retry", until: at(3000), text: "" }];
  const [row] = rowsOf([attempt("a", 1, "failed", 0, 0, 500), attempt("a", 1, "waiting", 500, 500, undefined, { kind: "retry" })], START, why);
  expect(row?.segments.at(-1)).toMatchObject({ kind: "backoff", from: 500, to: 3000 });
});

test("a failed try whose retry is due later is followed by its back-off", () => {
  const why: WaitReason[] = [{ node: "a", waits_for: "retry", until: at(20_000), text: "" }];
  const [row] = rowsOf([attempt("a", 1, "error", 0, 0, 500)], START, why);
  expect(row?.segments.map(({ kind, from, to }) => [kind, from, to])).toEqual([["failed", 0, 500], ["backoff", 500, 20_000]]);
  expect(row?.to).toBeUndefined();
});

test("branches have the labels of the drawing, in rows and in sentences", () => {
  const box = { kind: "call" as const, word: "http", start: false, box: false, w: 80, h: 40, x: 0, y: 0 };
  const graph: FlowGraph = {
    direction: "lr", form: "graph", width: 400, height: 200, more: false, edges: [],
    nodes: [
      { ...box, id: "a", key: "a", label: "a", short: "a", x: 300 }, { ...box, id: "fan", key: "fan", label: "fan", short: "fan", box: true },
      { ...box, id: "fan/1", key: "1", label: "speech", short: "speech", parent: "fan", y: 90 }, { ...box, id: "fan/0", key: "0", label: "motion", short: "motion", parent: "fan", y: 10 },
    ],
  };
  const rows = rowsOf([attempt("fan/1", 1, "ok", 0, 0, 70), attempt("fan/0", 1, "ok", 0, 0, 80)], START, [], graph);
  expect(rows.map((row) => row.name)).toEqual(["fan", "motion", "speech"]);
  expect([...readingOrder(graph).keys()]).toEqual(["fan", "fan/0", "fan/1", "a"]);
  expect(whyText({ node: "fan/0", waits_for: "report", text: "" }, START, runWords.en.why, graph)).toBe("`motion` is suspended until its worker reports.");
  expect(whyText({ node: "each/3", waits_for: "report", text: "" }, START, runWords.en.why, graph)).toBe("`each/3` is suspended until its worker reports.");
});

test("after a suspended call lies the wait for its report", () => {
  const why: WaitReason[] = [{ node: "b", waits_for: "report", text: "" }];
  const rows = rowsOf([attempt("a", 1, "suspended", 0, 0, 50), attempt("a", 1, "ok", 200, 200, 250), attempt("b", 1, "suspended", 300, 300, 340)], START, why);
  expect(rows.map((row) => row.segments.map(({ kind, from, to }) => [kind, from, to]))).toEqual([[["ok", 0, 50], ["waiting", 50, 200], ["ok", 200, 250]], [["ok", 300, 340], ["waiting", 340, undefined]]]);
});

test("rows of nodes inside follow their box, which gets a row of its own", () => {
  const rows = rowsOf([attempt("fan/1/x", 1, "ok", 0, 50, 80), attempt("b", 1, "ok", 90, 90, 95), attempt("fan/0/x", 1, "ok", 0, 10, 70)], START);
  expect(rows.map((row) => row.path)).toEqual(["fan", "fan/0", "fan/0/x", "fan/1", "fan/1/x", "b"]);
  expect(rows[0]).toMatchObject({ path: "fan", depth: 0, segments: [], to: 80 });
});

test("the axis has round steps", () => {
  expect(ticks(48_600)).toEqual([0, 8_000, 16_000, 24_000, 32_000, 40_000, 48_000]);
  expect(ticks(700).length).toBeLessThanOrEqual(9);
  expect(ticks(40 * 86_400_000).length).toBeLessThanOrEqual(9);
});

test("every reason has a sentence in both languages; an unknown one keeps the server's words", () => {
  const kinds = ["start", "resume", "step", "turn", "cancel_confirmation", "answer", "worker", "queue", "limit", "retry", "report", "timer", "signal", "approval", "balance", "budget"];
  for (const waits_for of kinds) {
    const reason: WaitReason = { node: "sub/a", waits_for, text: "server words", key: "k", amount: 5, attempt: 2, after: "HTTP 503.", service: "s", until: at(12_000) };
    for (const words of [runWords.en.why, runWords.zh.why]) {
      const text = whyText(reason, START, words);
      expect(text, waits_for).not.toContain("server words");
      expect(text, waits_for).not.toMatch(/undefined|NaN|null/);
    }
  }
  expect(whyText({ node: "a", waits_for: "eclipse", text: "the moon" }, START, runWords.en.why)).toBe("`a`: the moon");
  expect(whyText({ node: "a", waits_for: "retry", attempt: 2, after: "HTTP 503.", until: at(12_000), text: "" }, START, runWords.en.why)).toBe("Retry 2 of `a` in 12.0 s after HTTP 503.");
  expect(familyOfReason({ node: "", waits_for: "eclipse", text: "" })).toBe("idle");
});

test("errors are cut to their first line", () => {
  expect(short("one\ntwo")).toBe("one");
  expect(short("x".repeat(500))?.length).toBe(121);
  expect(short(undefined)).toBeUndefined();
});

test("only edited keys are sent with a rerun", () => {
  expect(changedKeys({ a: 1, b: { c: 2 } }, { a: 1, b: { c: 3 }, d: null })).toEqual({ b: { c: 3 }, d: null });
  expect(changedKeys({ a: 1 }, [1])).toEqual({});
});

test("paths of the state are readable, and runtime keys are known", () => {
  expect(pathText("/a/b~1c/0/d")).toBe("a.b/c[0].d");
  expect(pathText("")).toBe("$");
  expect(["_rt", "/_rt/x", "/shared/_rt.y", "/art", "_rtx"].map(isRuntimeKey)).toEqual([true, true, true, false, false]);
});

test("changes of a step are sorted by their part of the run", () => {
  const parts = partsOf([
    { path: "/shared/a/b", kind: "added", after: 1 }, { path: "/shared/_rt.x", kind: "added", after: 1 }, { path: "/node_states/sub~1a/status", kind: "changed", before: "pending", after: "running" },
    { path: "/node_states/sub~1a/started_at", kind: "added", after: "t" }, { path: "/result", kind: "added", after: null },
  ], false);
  expect(parts.shared.map((one) => one.path)).toEqual(["/a/b"]);
  expect(parts.moves).toEqual([{ node: "sub/a", to: "running" }]);
  expect(parts.others.map((one) => one.path)).toEqual(["/node_states/sub~1a/started_at", "/result"]);
});
