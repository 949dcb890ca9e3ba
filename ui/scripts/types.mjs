// Writes the types of an OpenAPI document: those of every schema, and one entry of `Routes` for each route of the native
// and the queue platform surface.
//
//   node scripts/types.mjs openapi.json                          the types of the console, src/api/openapi.ts
//   node scripts/types.mjs openapi.json --to FILE --sdk          another file, with comments and a type for each query
//   node scripts/types.mjs openapi.json --to FILE --check        only compares; 1 = the file is of another document
//
// The first line of the result holds the SHA-256 of the document's shape; tests compare it with the server's.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { to: { type: "string" }, sdk: { type: "boolean" }, check: { type: "boolean" } },
});
const target = flags.to ?? new URL("../src/api/openapi.ts", import.meta.url);
const document = JSON.parse(readFileSync(positionals[0], "utf8"));
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

/** The description of a schema as a comment, where comments are wanted. */
function comment(schema, indent) {
  const text = schema.description ?? schema.oneOf?.find((one) => one.description)?.description;
  if (!flags.sdk || !text) return [];
  return [`${indent}/** ${text.replace(/\s+/g, " ").replaceAll("*/", "* /")} */`];
}

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
  const lines = properties.flatMap(([field, of]) => {
    const optional = required.has(field) ? "" : "?";
    return [...comment(of, `${indent}  `), `${indent}  ${key(field)}${optional}: ${type(of, `${indent}  `)};`];
  });
  return `{\n${lines.join("\n")}\n${indent}}`;
}

/** The name of the type of a route's query: `ListRunsQuery`. */
const queryName = (operation) => `${operation.operationId.replace(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase())}Query`;

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

/** The named types of queries, which `routes` fills. */
const queries = [];

function routes() {
  const lines = [];
  for (const [path, item] of Object.entries(document.paths)) {
    if (!path.startsWith("/api/v1/") && !["/healthz", "/readyz"].includes(path)) continue;
    for (const method of METHODS) {
      const operation = item[method];
      if (!operation) continue;
      let query = parameters(operation, item, "query");
      if (flags.sdk && query !== "undefined") {
        queries.push(`export type ${queryName(operation)} = ${query};`, "");
        query = queryName(operation);
      }
      const body = operation.requestBody?.content?.["application/json"]?.schema;
      lines.push(
        `  ${JSON.stringify(`${method.toUpperCase()} ${path}`)}: {`,
        `    path: ${parameters(operation, item, "path")};`,
        `    query: ${query};`,
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
    lines.push(...comment(schema, ""), isPlain ? `export interface ${id} ${of}` : `export type ${id} = ${of};`, "");
  }
  return lines;
}

const digest = createHash("sha256").update(JSON.stringify(shape(document))).digest("hex");
if (flags.check) {
  const isSame = readFileSync(target, "utf8").startsWith(`// shape ${digest}\n`);
  if (!isSame) console.error(`${target} is of another OpenAPI document: run ./x types`);
  process.exit(isSame ? 0 : 1);
}
const routeLines = routes();
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
  ...queries,
  "/** Each route: the parameters of its path and its query, its body and its answer. */",
  "export interface Routes {",
  ...routeLines,
  "}",
  "",
];
writeFileSync(target, text.join("\n"));
console.log(`${flags.to ?? "src/api/openapi.ts"}: ${Object.keys(document.components.schemas).length} schemas, shape ${digest.slice(0, 12)}`);
