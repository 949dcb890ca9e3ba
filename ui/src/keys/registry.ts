// The registry of keyboard shortcuts. The help dialog reads it, so help and behaviour cannot differ.
import type { Language } from "../format/settings";

export interface KeyBinding {
  /** One key ("j", "Enter", "+"), two in a row ("g o"), or with Ctrl or Cmd ("mod+k"). */
  keys: string;
  label: (language: Language) => string;
  run: () => void;
  /** Also works while a text field has the focus. */
  inInputs?: boolean;
}

export interface KeyGroup {
  /** The heading in the help dialog; absent = everywhere. */
  title?: (language: Language) => string;
  bindings: KeyBinding[];
}

/** How long the second key of two may take. */
const SECOND_KEY_MS = 1_500;

export class KeyRegistry {
  private readonly groups = new Set<KeyGroup>();
  private first: { key: string; at: number } | undefined;

  add(group: KeyGroup): () => void {
    this.groups.add(group);
    return () => void this.groups.delete(group);
  }

  list(): KeyGroup[] {
    return [...this.groups];
  }

  /** Runs the binding of a key; later groups come first, because a page may redefine a key. Answers whether one ran. */
  press(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">, inInput: boolean, now: number): boolean {
    if (event.altKey) return false;
    const key = event.ctrlKey || event.metaKey ? `mod+${event.key.toLowerCase()}` : event.key;
    const first = this.first && now - this.first.at < SECOND_KEY_MS ? this.first.key : undefined;
    this.first = undefined;
    const bindings = this.list().reverse().flatMap((group) => group.bindings).filter((one) => !inInput || one.inInputs);
    const found = (first && bindings.find((one) => one.keys === `${first} ${key}`)) || bindings.find((one) => one.keys === key);
    if (found) {
      found.run();
      return true;
    }
    if (bindings.some((one) => one.keys.startsWith(`${key} `))) this.first = { key, at: now };
    return false;
  }
}

export const registry = new KeyRegistry();
