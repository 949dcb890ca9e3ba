// Drafts of definitions, kept in the browser until they are published or discarded.
import { store, stored } from "../../api/client";

export interface Draft {
  text: string;
  /** The version that the draft began with; 0 = a new flow. */
  base: number;
  at: number;
}

const keyOf = (flow: string) => `windlass.draft.${flow}`;

export function loadDraft(flow: string): Draft | undefined {
  try {
    const draft = JSON.parse(stored(keyOf(flow)) ?? "null") as Partial<Draft> | null;
    return draft && typeof draft.text === "string" && typeof draft.at === "number" ? { text: draft.text, base: draft.base ?? 0, at: draft.at } : undefined;
  } catch {
    return undefined;
  }
}

export function saveDraft(flow: string, draft: Draft | undefined): void {
  store(keyOf(flow), draft && JSON.stringify(draft));
}

/** The text of a new flow. */
export const NEW_TEXT = {
  yaml: `title: A new flow
start: greet
nodes:
  greet:
    service: echo
    prep:
      input_map: {hello: $params.name}
    post:
      output_key: greeting
  review:
    kind: approval
  done:
    service: echo
edges:
  - {from: greet, to: review}
  - {from: review, action: approved, to: done}
  - {from: review, action: rejected, to: greet}
`,
  json: `{
  "title": "A new flow",
  "start": "greet",
  "nodes": {
    "greet": {"service": "echo", "prep": {"input_map": {"hello": "$params.name"}}, "post": {"output_key": "greeting"}},
    "review": {"kind": "approval"},
    "done": {"service": "echo"}
  },
  "edges": [
    {"from": "greet", "to": "review"},
    {"from": "review", "action": "approved", "to": "done"},
    {"from": "review", "action": "rejected", "to": "greet"}
  ]
}
`,
};

export const isJson = (text: string) => /^\s*[{[]/.test(text);

/** A definition that was published as an object has one line: with lines it can be read and compared. */
export function readable(text: string): string {
  if (!isJson(text) || text.trim().includes("\n")) return text;
  try {
    return `${JSON.stringify(JSON.parse(text), null, 2)}\n`;
  } catch {
    return text;
  }
}
