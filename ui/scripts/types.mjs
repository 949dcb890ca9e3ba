// Writes src/api/openapi.ts from an OpenAPI document: the types of every schema, and one entry of `Routes` for each
// route of the native and the queue platform surface.
//
//   node scripts/types.mjs openapi.json
//
// The first line of the result holds the SHA-256 of the document's shape; a Rust test compares it with the server's.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

const document = JSON.parse(readFileSync(process.argv[2], "utf8"));
const METHODS = ["get", "post", "put", "patch", "delete"];

/** Fields of the document that say nothing about types. */
const SILENT = new Set(["description", "summary", "title", "example", "examples", "default", "pattern", "format", "tags", "operationId", "info"]);
/** Objects whose keys are names and not fields. */
const NAMES = new Set(["properties", "schemas", "paths", "responses", "content"]);

/** The part of the document that types are made of, with sorted keys and without numbers: two documents with the same
 * types are equal here. `crates/server/tests/console.rs` does the same. */
function shape(value, hasNames = false) {
  if (Array.isArray(value)) return value.filter((one) => typeof one !== "number").map((one) => shape(one));
  if (value === null || typeof value !== "object") return value;
  const keys = Object.keys(value).filter((key) => (hasNames || !SILENT.has(key)) && typeof value[key] !== "number");
  return Object.fromEntries(keys.sort().map((key) => [key, shape(value[key], !hasNames && NAMES.has(key))]));
}

const name = (reference) => reference.split("/").pop();
const key = (text) => (/^[A-Za-z_$][\w$]*$/.test(text) ? text : JSON.stringify(text));

function type(schema, indent = "") {
  if (schema === undefined || schema === true) return "unknown";
  if (schema.$ref) return name(schema.$ref);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((word) => JSON.stringify(word)).join(" | ");
  for (const some of ["oneOf", "anyOf"]) {
    // Alternatives that only say which fields are required do not change the fields.
    if (schema[some]?.some((one) => one.$ref || one.type || one.oneOf || one.allOf || one.enum)) return [...new Set(schema[some].map((one) => type(one, indent)))].join(" | ");
  }
  if (schema.allOf) return schema.allOf.map((one) => `(${type(one, indent)})`).join(" & ");
  if (Array.isArray(schema.type)) {
    return schema.type.map((one) => type({ ...schema, type: one }, indent)).join(" | ");
  }
  switch (schema.type) {
    case "string": return "string";
    case "integer": case "number": return "number";
    case "boolean": return "boolean";
    case "null": return "null";
    case "array": return `Array<${type(schema.items, indent)}>`;
    case "object": return object(schema, indent);
    default: return "unknown";
  }
}

function object(schema, indent) {
  const properties = Object.entries(schema.properties ?? {});
  const rest = schema.additionalProperties;
  if (properties.length === 0) {
    return `Record<string, ${rest && rest !== true ? type(rest, indent) : "unknown"}>`;
  }
  const required = new Set(schema.required ?? []);
  const lines = properties.map(([field, of]) => {
    const optional = required.has(field) ? "" : "?";
    return `${indent}  ${key(field)}${optional}: ${type(of, `${indent}  `)};`;
  });
  return `{\n${lines.join("\n")}\n${indent}}`;
}

function parameters(operation, item, place) {
  const all = [...(item.parameters ?? []), ...(operation.parameters ?? [])].filter((one) => one.in === place);
  if (all.length === 0) return "undefined";
  return `{ ${all.map((one) => `${key(one.name)}${one.required ? "" : "?"}: ${type(one.schema)}`).join("; ")} }`;
}

function answer(operation) {
  const good = Object.entries(operation.responses ?? {}).filter(([status]) => status.startsWith("2"));
  const types = good.map(([, response]) => {
    const content = response.content ?? {};
    const json = content["application/json"];
    return json ? type(json.schema, "    ") : Object.keys(content).length > 0 ? "string" : "undefined";
  });
  return [...new Set(types)].join(" | ") || "unknown";
}

function routes() {
  const lines = [];
  for (const [path, item] of Object.entries(document.paths)) {
    if (!path.startsWith("/api/v1/") && !["/healthz", "/readyz"].includes(path)) continue;
    for (const method of METHODS) {
      const operation = item[method];
      if (!operation) continue;
      const body = operation.requestBody?.content?.["application/json"]?.schema;
      lines.push(
        `  ${JSON.stringify(`${method.toUpperCase()} ${path}`)}: {`,
        `    path: ${parameters(operation, item, "path")};`,
        `    query: ${parameters(operation, item, "query")};`,
        `    body: ${body ? type(body, "    ") : "undefined"};`,
        `    answer: ${answer(operation)};`,
        "  };",
      );
    }
  }
  return lines;
}

function schemas() {
  const lines = [];
  for (const [id, schema] of Object.entries(document.components.schemas)) {
    if (id.startsWith("Scheduler")) continue;
    const item = id.startsWith("List_") ? id.slice("List_".length) : undefined;
    if (item && document.components.schemas[item]) {
      lines.push(`export type ${id} = List<${item}>;`, "");
      continue;
    }
    const of = type(schema);
    const isPlain = of.startsWith("{") && !of.includes("\n} | ");
    lines.push(isPlain ? `export interface ${id} ${of}` : `export type ${id} = ${of};`, "");
  }
  return lines;
}

const digest = createHash("sha256").update(JSON.stringify(shape(document))).digest("hex");
const text = [
  `// shape ${digest}`,
  "// Generated from the server's OpenAPI document by `./x types`. Do not edit.",
  "",
  "/** A page of a list; `next` is the cursor of the following page. */",
  "export interface List<T> {",
  "  items: T[];",
  "  next?: string | null;",
  "}",
  "",
  ...schemas(),
  "/** Each route: the parameters of its path and its query, its body and its answer. */",
  "export interface Routes {",
  ...routes(),
  "}",
  "",
];
writeFileSync(new URL("../src/api/openapi.ts", import.meta.url), text.join("\n"));
console.log(`src/api/openapi.ts: ${Object.keys(document.components.schemas).length} schemas, shape ${digest.slice(0, 12)}`);
