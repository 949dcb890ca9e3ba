import { describe, expect, it } from "vitest";
import { formOfText, keysAt, valuesAt } from "./vocabulary";

const words = { services: ["tts"], flows: ["film"], nodes: ["a", "b"] };

describe("the completion of a definition", () => {
  it("knows the form of a text that is not finished", () => {
    expect(formOfText('{"start": "a", "nodes": {')).toBe("graph");
    expect(formOfText("nodes:\n  - {id: a")).toBe("dag");
    expect(formOfText("title: x\nsteps:\n  - ")).toBe("steps");
  });
  it("offers the fields of a place", () => {
    expect(keysAt([], "graph")).toContain("start");
    expect(keysAt(["nodes", "a"], "graph")).toContain("service");
    expect(keysAt(["nodes", 0], "dag")).toContain("type");
    expect(keysAt(["nodes", "a", "params"], "graph", "approval")).toContain("assignees");
    expect(keysAt(["edges", 1], "dag")).toContain("target");
    expect(keysAt(["steps", 0, "settings", "retry"], "steps")).toContain("max");
  });
  it("offers the words of a value", () => {
    expect(valuesAt(["nodes", "a", "kind"], "graph", words)).toContain("approval");
    expect(valuesAt(["edges", 0, "to"], "graph", words)).toEqual(["a", "b"]);
    expect(valuesAt(["nodes", "a", "service"], "graph", words)).toEqual(["tts"]);
    expect(valuesAt(["nodes", "a", "prep", "input_key"], "graph", words)).toContain("$node.a.output");
  });
});
