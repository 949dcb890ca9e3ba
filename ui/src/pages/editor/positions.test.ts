import { jsonLanguage } from "@codemirror/lang-json";
import { yamlLanguage } from "@codemirror/lang-yaml";
import { describe, expect, it } from "vitest";
import { parsePath, parsePointer, pathAt, placeOf, placesOf } from "./positions";

const places = (language: typeof jsonLanguage, text: string) => placesOf(language.parser.parse(text), (from, to) => text.slice(from, to));
const at = (language: typeof jsonLanguage, text: string, path: string) => {
  const place = placeOf(places(language, text), parsePath(path) ?? []);
  return place && text.slice(place.key?.from ?? place.from, place.to);
};

const JSON_TEXT = '{"nodes": {"a b": {"kind": "choice"}, "c": {}}, "edges": [{"to": "x"}, {"to": "y"}]}';
const YAML_TEXT = 'nodes:\n  "a b": {kind: choice}\n  c:\n    service: |\n      x\nedges:\n  - {to: x}\n  - from: a\n    to: y\n';

describe("a path of a problem", () => {
  it("is read in all its spellings", () => {
    expect(parsePath('$.nodes["a b"].x[3]')).toEqual(["nodes", "a b", "x", 3]);
    expect(parsePath("$")).toEqual([]);
    expect(parsePath("line 3 column 13")).toBeUndefined();
    expect(parsePointer("/nodes/0/a~1b~0")).toEqual(["nodes", "0", "a/b~"]);
  });
});

describe("the place of a path", () => {
  it("is found in JSON", () => {
    expect(at(jsonLanguage, JSON_TEXT, '$.nodes["a b"].kind')).toBe('"kind": "choice"');
    expect(at(jsonLanguage, JSON_TEXT, "$.edges[1].to")).toBe('"to": "y"');
  });
  it("is found in YAML", () => {
    expect(at(yamlLanguage, YAML_TEXT, '$.nodes["a b"].kind')).toBe("kind: choice");
    expect(at(yamlLanguage, YAML_TEXT, "$.edges[1].to")).toBe("to: y");
    expect(at(yamlLanguage, YAML_TEXT, "$.nodes.c.service")).toContain("service: |");
  });
  it("falls back to the parent", () => expect(at(jsonLanguage, JSON_TEXT, "$.nodes.c.service")).toBe('"c": {}'));
  it("stands still in a broken text", () => expect(at(yamlLanguage, "nodes:\n  a: {kind: [\n", "$.nodes.a")).toContain("a:"));
});

describe("the path at a position", () => {
  it("is the deepest one", () => {
    expect(pathAt(places(jsonLanguage, JSON_TEXT), JSON_TEXT.indexOf("choice"))).toEqual(["nodes", "a b", "kind"]);
    expect(pathAt(places(yamlLanguage, YAML_TEXT), YAML_TEXT.indexOf("y\n"))).toEqual(["edges", 1, "to"]);
  });
});
