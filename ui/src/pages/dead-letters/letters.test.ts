import { describe, expect, it } from "vitest";
import { mergePatch } from "../../parts/json-input";
import { patchBetween, patchPreview, selection, selectionFlags } from "./letters";

describe("the letters of an action", () => {
  it("are named, or a group, or all of a queue", () => {
    expect(selection({ queue: "q", ids: ["a"], count: 1 })).toEqual({ ids: ["a"] });
    expect(selection({ queue: "q", fingerprint: "f", count: 2 })).toMatchObject({ fingerprint: "f" });
    expect(selectionFlags({ queue: "q", count: 3 })).toEqual(["--all"]);
  });
});

describe("a patch", () => {
  it("shows what it changes", () => {
    expect(patchPreview({ seed: 1, image: "a" }, { model: "m", seed: null })).toEqual([{ kind: "removed", text: '"seed": 1' }, { kind: "added", text: '"model": "m"' }]);
  });
  it("comes from an edited payload", () => {
    const [before, after] = [{ a: 1, b: { c: 2, d: 3 }, e: [1] }, { b: { c: 2, d: 4 }, e: [1], f: true }];
    const patch = patchBetween(before, after);
    expect(patch).toEqual({ a: null, b: { d: 4 }, f: true });
    expect(mergePatch(before, patch)).toEqual(after);
  });
});
