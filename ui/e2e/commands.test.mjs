// Each dialog offers its action as a command: every command and every flag that the console writes must exist.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { BINARY } from "./server.mjs";

const SOURCES = new URL("../src", import.meta.url).pathname;
const sources = () => readdirSync(SOURCES, { recursive: true }).filter((name) => /\.tsx?$/.test(name) && !name.includes(".test.")).map((name) => readFileSync(join(SOURCES, name), "utf8"));

const helps = new Map();
function help(...words) {
  const key = words.join(" ");
  if (!helps.has(key)) helps.set(key, execFileSync(BINARY, [...words, "--help"], { encoding: "utf8" }));
  return helps.get(key);
}

/** The text of a call from its opening bracket to the closing one. */
function callAt(text, start) {
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === "(") depth += 1;
    else if (text[at] === ")" && (depth -= 1) === 0) return text.slice(start, at);
  }
  return text.slice(start);
}

/** The commands that are built from words: the command, its possible verbs, its flags. */
function built(text) {
  return [...text.matchAll(/\bcli\(/g)].flatMap(({ index }) => {
    const call = callAt(text, index + 3);
    const strings = [...call.matchAll(/"([^"]*)"/g)].map(([, word]) => word);
    const [command] = strings;
    if (!command) return [];
    const second = call.split(",")[1] ?? "";
    const verbs = [...second.replace(/[=!]==? *"[^"]*"/g, "").matchAll(/"([a-z-]+)"/g)].map(([, word]) => word);
    return [{ command, verbs, flags: strings.flatMap((word) => word.match(/^--?[a-z][a-z-]*/) ?? []) }];
  });
}

/** The commands that stand in a text: `windlass run start FLOW --watch`. */
function written(text) {
  return [...text.matchAll(/windlass ([a-z]+)((?: [^`"\n<]+)?)/g)].flatMap(([, command, rest]) => {
    if (!new RegExp(`^ +${command} `, "m").test(help())) return [];
    const [verb] = rest.trim().split(/\s+/);
    const hasVerbs = /^Commands:/m.test(help(command)) && /^[a-z][a-z-]*$/.test(verb ?? "");
    return [{ command, verbs: hasVerbs ? [verb] : [], flags: rest.split(" && ")[0].match(/(?<= )--?[a-z][a-z-]*/g) ?? [] }];
  });
}

/** A command with each of its verbs, and alone. */
function anyVerb(command) {
  const verbs = help(command).split(/^Commands:$/m)[1]?.split("\n\n")[0].match(/^ {2}[a-z][a-z-]*/gm) ?? [];
  return [[command], ...verbs.map((verb) => [command, verb.trim()])];
}

test("every command that the console offers exists, with its flags", () => {
  const found = sources().flatMap((text) => [...built(text), ...written(text)]);
  assert.ok(found.length > 40, `${found.length} commands`);
  const wrong = [];
  for (const { command, verbs, flags } of found) {
    const paths = verbs.length > 0 ? verbs.map((verb) => [command, verb]) : [[command]];
    for (const path of paths) {
      try {
        help(...path);
      } catch {
        wrong.push(`windlass ${path.join(" ")}`);
      }
    }
    // A verb that is a variable may be any of the command.
    const texts = (verbs.length > 0 ? paths : anyVerb(command)).flatMap((path) => { try { return [help(...path)]; } catch { return []; } });
    for (const flag of flags) if (!texts.some((text) => new RegExp(`(^|[\\s,])${flag}\\b`, "m").test(text))) wrong.push(`windlass ${paths[0].join(" ")} ${flag}`);
  }
  assert.deepEqual([...new Set(wrong)], []);
});

test("every flag that stands in the console exists somewhere", () => {
  const commands = help().split(/^Commands:$/m)[1].split("\n\n")[0].match(/^ {2}[a-z][a-z-]*/gm).map((command) => command.trim()).filter((command) => command !== "help");
  const known = commands.flatMap(anyVerb).filter((path) => path[1] !== "help").map((path) => help(...path)).join("\n");
  // A key of an object is a variable of the styles.
  const flags = new Set(sources().flatMap((text) => [...text.matchAll(/"(--[a-z][a-z-]+)"(?! *:)/g)].map(([, flag]) => flag)));
  assert.ok(flags.size > 10, [...flags].join(" "));
  assert.deepEqual([...flags].filter((flag) => !new RegExp(`(^|[\\s,])${flag}\\b`, "m").test(known)), []);
});
