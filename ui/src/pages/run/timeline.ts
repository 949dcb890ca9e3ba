// The rows and segments of the timeline, from the attempts of a run.
import type { AttemptView, FlowGraph } from "../../api/console";
import type { WaitReason } from "../../api/openapi";
import { ms } from "../../format/time";
import { nameOf } from "../../graph/names";

export type SegmentKind = "queued" | "running" | "ok" | "failed" | "backoff" | "waiting" | "canceled";

export interface Segment {
  kind: SegmentKind;
  /** Milliseconds since the first moment of the run. */
  from: number;
  /** Absent while it goes on. */
  to?: number;
  attempt: number;
  /** The meaning of the time until the next segment: after a failure, or after a call that was suspended. */
  then?: "backoff" | "waiting";
}

export interface TimelineRow {
  path: string;
  depth: number;
  /** The last part of the path, or the label of a branch. */
  name: string;
  segments: Segment[];
  /** The time of the first segment. */
  from: number;
  to?: number;
}

const WAITING_KINDS = /wait|approval|timer|delay|sleep|signal/i;
const WAITS = new Set(["waiting", "parked", "suspended", "paused"]);

function kindOf(attempt: AttemptView): SegmentKind {
  if (attempt.kind === "retry" || attempt.status === "retrying") return "backoff";
  // The worker of a suspended call has answered; the wait for its report follows.
  if (attempt.status === "suspended" && attempt.finished_at) return "ok";
  // A node that waits for a timer, a signal or a person makes no call: all of its time is a wait.
  if (WAITS.has(attempt.status) || (attempt.fence == null && WAITING_KINDS.test(attempt.kind) && !attempt.error)) return "waiting";
  if (attempt.status === "running") return "running";
  if (attempt.status === "ok" || attempt.status === "completed") return "ok";
  if (attempt.status === "canceled") return "canceled";
  return attempt.finished_at ? "failed" : "running";
}

function segmentsOf(attempt: AttemptView, start: number): Segment[] {
  const [queued, began, ended] = [ms(attempt.queued_at), ms(attempt.started_at), ms(attempt.finished_at)];
  const segments: Segment[] = [];
  const at = (time: number) => Math.max(0, time - start);
  if (queued !== undefined && (began === undefined || began - queued >= 1)) {
    segments.push({ kind: "queued", from: at(queued), to: began === undefined ? undefined : at(began), attempt: attempt.attempt });
  }
  const kind = kindOf(attempt);
  const then = kind === "failed" ? "backoff" : kind === "ok" && attempt.status === "suspended" ? "waiting" : undefined;
  if (began !== undefined) segments.push({ kind, from: at(began), to: ended === undefined ? undefined : at(ended), attempt: attempt.attempt, then });
  return segments;
}

/** Fills the time between two attempts of one visit: the back-off after a failure, the wait after a suspension. */
function withGaps(segments: Segment[]): Segment[] {
  const all: Segment[] = [];
  for (const segment of segments) {
    const before = all.at(-1);
    const isSameVisit = before?.then === "waiting" || (before !== undefined && segment.attempt > before.attempt);
    if (before?.then && before.to !== undefined && isSameVisit && segment.from - before.to > 1) {
      all.push({ kind: before.then, from: before.to, to: segment.from, attempt: before.attempt });
    }
    all.push(segment);
  }
  return all;
}

/** One row for each path that has attempts, in the order in which they began; nodes inside follow their box. */
export function rowsOf(attempts: AttemptView[], start: number, why: WaitReason[] = [], graph?: FlowGraph | null): TimelineRow[] {
  const retries = new Map(why.filter((reason) => reason.waits_for === "retry").map((reason) => [reason.node, ms(reason.until)]));
  const suspended = new Set(why.filter((reason) => reason.waits_for === "report").map((reason) => reason.node));
  const rows = new Map<string, TimelineRow>();
  for (const attempt of attempts) {
    const segments = segmentsOf(attempt, start);
    const [first] = segments;
    if (!first) continue;
    const row = rows.get(attempt.node);
    if (row) {
      row.segments.push(...segments);
      continue;
    }
    const parts = attempt.node.split("/");
    rows.set(attempt.node, { path: attempt.node, depth: parts.length - 1, name: nameOf(graph, attempt.node), segments, from: first.from });
  }
  for (const row of rows.values()) {
    row.segments = withGaps(row.segments.sort((a, b) => a.from - b.from));
    const ended = row.segments.at(-1);
    if (suspended.has(row.path) && ended?.to !== undefined) row.segments.push({ kind: "waiting", from: ended.to, attempt: ended.attempt });
    const last = row.segments.at(-1);
    const retry = retries.get(row.path);
    // A back-off ends at a known time in the future.
    if (last?.kind === "backoff" && last.to === undefined && retry !== undefined) last.to = Math.max(last.from, retry - start);
    // The last try has failed, and the next one has no attempt yet.
    if (last?.kind === "failed" && last.to !== undefined && retry !== undefined) row.segments.push({ kind: "backoff", from: last.to, to: Math.max(last.to, retry - start), attempt: last.attempt });
    row.to = row.segments.at(-1)?.kind === "backoff" ? undefined : last?.to;
  }
  return withBoxes([...rows.values()]);
}

/** Adds a row for each box that has rows inside, and puts the rows below it. */
function withBoxes(rows: TimelineRow[]): TimelineRow[] {
  const all = new Map(rows.map((row) => [row.path, row]));
  for (const row of rows) {
    const parts = row.path.split("/");
    for (let depth = parts.length - 1; depth > 0; depth -= 1) {
      const path = parts.slice(0, depth).join("/");
      const box = all.get(path);
      if (!box) all.set(path, { path, depth: depth - 1, name: parts[depth - 1] ?? path, segments: [], from: row.from, to: row.to });
      else if (box.segments.length === 0) {
        box.from = Math.min(box.from, row.from);
        box.to = box.to === undefined || row.to === undefined ? undefined : Math.max(box.to, row.to);
      }
    }
  }
  const children = new Map<string, TimelineRow[]>();
  for (const row of all.values()) {
    const parent = row.path.split("/").slice(0, -1).join("/");
    children.set(parent, [...(children.get(parent) ?? []), row]);
  }
  const ordered: TimelineRow[] = [];
  const add = (path: string) => {
    for (const row of (children.get(path) ?? []).sort((a, b) => a.from - b.from || byNumber(a.path, b.path))) {
      ordered.push(row);
      add(row.path);
    }
  };
  add("");
  return ordered;
}

/** Branches that began at one time are ordered by their index; other rows keep their order. */
function byNumber(a: string, b: string): number {
  const index = (path: string) => Number(path.slice(path.lastIndexOf("/") + 1));
  const order = index(a) - index(b);
  return Number.isNaN(order) ? 0 : order;
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000];

/** The marks of the axis: about `n` of a length that people count in. */
export function ticks(span: number, n = 8): number[] {
  const step = STEPS.find((one) => span / one <= n) ?? Math.ceil(span / n / 86_400_000) * 86_400_000;
  return Array.from({ length: Math.floor(span / step) + 1 }, (_, i) => i * step);
}
