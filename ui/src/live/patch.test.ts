import { expect, test } from "vitest";
import type { RunView } from "../api/console";
import { applyPatch } from "./patch";

const view = {
  seq: 5,
  run: { id: "run_1", status: "running" },
  node_states: { a: { status: "completed" }, b: { status: "running" }, "each/1": { status: "running" } },
  attempts: [{ fence: 1, node: "a", visit: 1, attempt: 1, status: "ok" }, { fence: 2, node: "b", visit: 2, attempt: 1, status: "running" }],
  why: [{ node: "b", waits_for: "answer", text: "" }],
  graph: {},
} as unknown as RunView;

const patch = (some: object) => ({ topic: "run:run_1", seq: 6, ...some });

test("a patch replaces nodes and attempts whole and keeps the others", () => {
  const next = applyPatch(view, patch({ node_states: { b: { status: "completed" } }, attempts: [{ fence: 2, node: "b", visit: 2, attempt: 1, status: "ok" }, { fence: 3, node: "c", visit: 3, attempt: 1, status: "running" }] })) as RunView;
  expect(next.seq).toBe(6);
  expect(next.node_states.b?.status).toBe("completed");
  expect(next.node_states.a).toBe(view.node_states.a);
  expect(next.attempts.map((one) => one.status)).toEqual(["ok", "ok", "running"]);
  expect(next.attempts[0]).toBe(view.attempts[0]);
  expect(next.graph).toBe(view.graph);
});

test("a patch that comes twice changes nothing more", () => {
  const twice = patch({ node_states: { b: { status: "failed" } }, attempts: [{ fence: 2, node: "b", visit: 2, attempt: 1, status: "failed" }] });
  const once = applyPatch(view, twice) as RunView;
  expect(applyPatch(once, twice)).toEqual(once);
});

test("an older patch is ignored, and a reset asks for the view", () => {
  expect(applyPatch(view, { topic: "run:run_1", seq: 4, node_states: { b: { status: "failed" } } as never })).toBe(view);
  expect(applyPatch(view, patch({ reset: true }))).toBe("refetch");
});

test("nodes that are gone disappear", () => {
  const next = applyPatch(view, patch({ removed: ["each/1"] })) as RunView;
  expect(Object.keys(next.node_states)).toEqual(["a", "b"]);
});

test("attempts without a fence are told apart by node, visit and attempt", () => {
  const waits = { ...view, attempts: [{ node: "t", visit: 1, attempt: 1, status: "waiting" }] } as RunView;
  const next = applyPatch(waits, patch({ attempts: [{ node: "t", visit: 2, attempt: 1, status: "waiting" }, { node: "t", visit: 1, attempt: 1, status: "ok" }] })) as RunView;
  expect(next.attempts.map((one) => `${one.visit} ${one.status}`)).toEqual(["1 ok", "2 waiting"]);
});
