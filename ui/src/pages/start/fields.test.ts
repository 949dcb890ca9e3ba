import { expect, test } from "vitest";
import { labelsOf, paramsRead, type VariableField, valueOf, variablesOf } from "./fields";

const field = (type: string): VariableField => ({ name: "x", type, isRequired: false });

test("declared variables become fields", () => {
  expect(variablesOf({ variables: { n: { type: "number", defaultValue: 3 }, name: { type: "string", required: true }, odd: null } })).toEqual([
    { name: "n", type: "number", isRequired: false, byDefault: "3" }, { name: "name", type: "string", isRequired: true, byDefault: undefined }, { name: "odd", type: "string", isRequired: false, byDefault: undefined },
  ]);
  expect(variablesOf({ nodes: {} })).toBeUndefined();
  expect(variablesOf(undefined)).toBeUndefined();
});

test("values have the type of their variable", () => {
  expect(valueOf(field("number"), " 5.5 ")).toEqual({ value: 5.5, isBad: false });
  expect(valueOf(field("number"), "five").isBad).toBe(true);
  expect(valueOf(field("boolean"), "true")).toEqual({ value: true, isBad: false });
  expect(valueOf(field("boolean"), "yes").isBad).toBe(true);
  expect(valueOf(field("array"), "[1]")).toEqual({ value: [1], isBad: false });
  expect(valueOf(field("array"), "{}").isBad).toBe(true);
  expect(valueOf(field("object"), "{").isBad).toBe(true);
  expect(valueOf(field("string"), "5")).toEqual({ value: "5", isBad: false });
  expect(valueOf(field("string"), "")).toEqual({ isBad: false });
});

test("parameters are found in the text of a definition", () => {
  expect(paramsRead('{"input_key":"$params.name","t":"{{__in.line}}","u":"$params.name"}')).toEqual(["name", "line"]);
});

test("labels are key=value", () => {
  expect(labelsOf("a=1  b=x=y")).toEqual({ a: "1", b: "x=y" });
  expect(labelsOf("a")).toBeUndefined();
  expect(labelsOf("")).toEqual({});
});
