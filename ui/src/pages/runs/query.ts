// The query language of runs, as far as the query bar needs it: terms with their places, and completions. The server
// decides what a term means.

export interface QueryTerm {
  /** The term as it was written. */
  text: string;
  /** Its place, in characters from 0. */
  from: number;
  to: number;
  isNegated: boolean;
  /** `status`, `params.x`, `error`; absent for a bare word. */
  field?: string;
  /** `:`, `~`, `=`, `>` or `<`. */
  operator?: string;
  value: string;
}

const HEAD = /^(-?)([A-Za-z_][\w.-]*)(:|~|=|>|<)/;

/** Splits a query at spaces outside of quotes. */
export function terms(query: string): QueryTerm[] {
  const found: QueryTerm[] = [];
  let at = 0;
  while (at < query.length) {
    if (/\s/.test(query[at] ?? "")) {
      at += 1;
      continue;
    }
    const from = at;
    at = endOf(query, at);
    found.push(term(query.slice(from, at), from));
  }
  return found;
}

function endOf(query: string, from: number): number {
  let isQuoted = false;
  for (let at = from; at < query.length; at += 1) {
    const char = query[at] ?? "";
    if (isQuoted && char === "\\") at += 1;
    else if (char === '"') isQuoted = !isQuoted;
    else if (!isQuoted && /\s/.test(char)) return at;
  }
  return query.length;
}

function term(text: string, from: number): QueryTerm {
  const head = HEAD.exec(text);
  const place = { text, from, to: from + text.length };
  if (!head) return { ...place, isNegated: text.startsWith("-") && text.length > 1, value: text.replace(/^-/, "") };
  return { ...place, isNegated: head[1] === "-", field: head[2], operator: head[3], value: text.slice(head[0].length) };
}

/** The query without the term. */
export function without(query: string, gone: QueryTerm): string {
  return terms(query).filter((one) => one.from !== gone.from).map((one) => one.text).join(" ");
}

/** The query with one more term; the same term is not added twice. */
export function withTerm(query: string, text: string): string {
  const all = terms(query).map((one) => one.text);
  return all.includes(text) ? all.join(" ") : [...all, text].join(" ");
}

/** The query with `field` set to this value alone, or without the field. */
export function withField(query: string, field: string, value: string | undefined): string {
  const others = terms(query).filter((one) => one.field !== field || one.isNegated).map((one) => one.text);
  return (value === undefined ? others : [...others, `${field}:${quotedValue(value)}`]).join(" ");
}

/** The values that a field is set to. */
export function valuesOf(query: string, field: string): string[] {
  return terms(query).filter((one) => one.field === field && !one.isNegated && one.operator === ":").flatMap((one) => one.value.split(","));
}

/** A value as the language reads it: with quotes where it has a space or a comma. */
export function quotedValue(value: string): string {
  return /[\s,"]/.test(value) || value === "" ? JSON.stringify(value) : value;
}

/** The position that an error of the server names: `?query:7`. */
export function errorPlace(path: string): number | undefined {
  const found = /^\?query:(\d+)$/.exec(path);
  return found ? Number(found[1]) : undefined;
}

export interface Completion {
  /** The text that replaces the typed one. */
  text: string;
  /** The key of its explanation. */
  hint?: string;
  /** Whether the term is whole; otherwise a value follows. */
  isWhole: boolean;
}

export const FIELDS: { text: string; hint: string }[] = [
  { text: "status:", hint: "status" }, { text: "flow:", hint: "flow" }, { text: "node:", hint: "node" }, { text: "error~", hint: "errorText" }, { text: "error:", hint: "error" },
  { text: "account:", hint: "account" }, { text: "worker:", hint: "worker" }, { text: "params.", hint: "params" }, { text: "label.", hint: "label" }, { text: "after:", hint: "after" }, { text: "before:", hint: "before" },
  { text: "duration>", hint: "longer" }, { text: "duration<", hint: "shorter" }, { text: "trigger:", hint: "trigger" }, { text: "parent:", hint: "parent" }, { text: "schedule:", hint: "schedule" }, { text: "version:", hint: "version" },
  { text: "request:", hint: "request" }, { text: "id:", hint: "id" },
];

const VALUES: Record<string, string[]> = {
  status: ["running", "waiting", "paused", "pending", "canceling", "completed", "failed", "canceled"],
  trigger: ["api", "parent", "schedule"],
  after: ["1h", "6h", "24h", "7d"], before: ["1h", "24h", "7d"], duration: ["10s", "1m", "10m", "1h"],
  error: ["error", "transport", "timeout", "no_worker", "lost", "balance"],
};

const SHOWN = 12;

/** Completions of the term that is being typed. `known` has values that the server listed, such as names of flows. */
export function completions(typed: string, known: Record<string, string[]>): Completion[] {
  const sign = typed.startsWith("-") ? "-" : "";
  const bare = typed.slice(sign.length);
  const { field, operator, value } = term(bare, 0);
  if (!field || !operator) {
    return FIELDS.filter((one) => one.text.startsWith(bare.toLowerCase())).slice(0, 20).map((one) => ({ text: sign + one.text, hint: one.hint, isWhole: false }));
  }
  const start = value.lastIndexOf(",") + 1;
  const needle = value.slice(start).replace(/^"/, "").toLowerCase();
  const candidates = [...(VALUES[field] ?? []), ...(known[field] ?? [])];
  return candidates
    .filter((one) => one.toLowerCase().includes(needle) && one !== value)
    .slice(0, SHOWN)
    .map((one) => ({ text: `${sign}${field}${operator}${value.slice(0, start)}${quotedValue(one)}`, isWhole: true }));
}
