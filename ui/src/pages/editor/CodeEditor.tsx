// CodeMirror behind a component: text, marks of problems, completion, and the selection that the graph shares.
import { autocompletion, type Completion, type CompletionContext, type CompletionResult, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, defaultHighlightStyle, ensureSyntaxTree, foldGutter, foldKeymap, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useImperativeHandle, useRef, type Ref } from "react";
import type { EditorProblem } from "./problems";
import { parsePath, parsePointer, pathAt, type Place, placeOf, placesOf, type Segment } from "./positions";
import { formOfText, keysAt, referencesOf, valuesAt, type Vocabulary } from "./vocabulary";

export interface CodeHandle {
  /** Moves the cursor to a place of the definition, or to a line; `isQuiet` leaves the focus where it is. */
  show: (where: { path: Segment[] } | { line: number; column: number }, isQuiet?: boolean) => void;
}

interface CodeEditorProps {
  text: string;
  language: "json" | "yaml";
  problems: EditorProblem[];
  vocabulary: Vocabulary;
  label: string;
  onChange: (text: string) => void;
  onPath: (path: Segment[]) => void;
  /** The editor is there, and its handle works. */
  onReady: () => void;
  ref?: Ref<CodeHandle>;
}

/** How long the editor may parse for one question. */
const PARSE_MS = 100;

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--code-key)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-str)" },
  { tag: [tags.number, tags.bool], color: "var(--code-num)" },
  { tag: [tags.null, tags.keyword, tags.typeName, tags.labelName], color: "var(--code-nul)" },
  { tag: [tags.comment, tags.punctuation, tags.separator, tags.brace, tags.squareBracket, tags.meta], color: "var(--text-3)" },
]);

function places(state: EditorState): Place[] {
  const tree = ensureSyntaxTree(state, state.doc.length, PARSE_MS);
  return tree ? placesOf(tree, (from, to) => state.sliceDoc(from, to)) : [];
}

/** The range of a problem: the place of its path, else its line. */
function rangeOf(state: EditorState, all: Place[], problem: EditorProblem): { from: number; to: number } {
  const path = (problem.pointer ? parsePointer(problem.pointer) : undefined) ?? parsePath(problem.path);
  const place = path && path.length > 0 ? placeOf(all, path) : undefined;
  if (place) {
    const isWhole = place.path.length === path?.length;
    const to = isWhole && !state.sliceDoc(place.from, place.to).includes("\n") ? place.to : (place.key?.to ?? Math.min(place.to, state.doc.lineAt(place.from).to));
    return { from: place.key?.from ?? place.from, to };
  }
  const line = state.doc.line(Math.min(Math.max(1, problem.line ?? 1), state.doc.lines));
  return { from: Math.min(line.from + Math.max(0, (problem.column ?? 1) - 1), line.to), to: line.to };
}

function complete(vocabulary: { current: Vocabulary }) {
  return (context: CompletionContext): CompletionResult | null => {
    const { state, pos } = context;
    const word = context.matchBefore(/[\w@$./{-]*/);
    if (!word || (word.from === word.to && !context.explicit)) return null;
    const line = state.doc.lineAt(pos);
    const before = state.sliceDoc(line.from, word.from);
    const all = places(state);
    const path = pathAt(all, pos);
    const isValue = /:\s*["']?$/.test(before) || (typeof path.at(-1) === "number" && /[[,-]\s*["']?$/.test(before));
    const text = state.doc.toString();
    const form = formOfText(text);
    const options: Completion[] = isValue
      ? valuesAt(keyBefore(before, path), form, vocabulary.current).map((label) => ({ label, type: "constant" }))
      : keysAt(mappingAt(all, pos, path), form, kindAt(state, all, path)).map((label) => ({ label, type: "property", apply: keyText(label, before, text) }));
    if (isValue && word.text.startsWith("$")) options.push(...referencesOf(form, vocabulary.current.nodes).map((label) => ({ label, type: "variable" })));
    const known = new Set<string>();
    const unique = options.filter(({ label }) => !known.has(label) && known.add(label));
    return unique.length > 0 ? { from: word.from, options: unique, validFor: /^[\w@$./{-]*$/ } : null;
  };
}

/** The path of the value that is being typed: in a broken text the tree may end before it. */
function keyBefore(before: string, path: Segment[]): Segment[] {
  const key = /["']?([\w-]+)["']?\s*:\s*["']?$/.exec(before)?.[1];
  return key === undefined || path.includes(key) ? path : [...path, key];
}

/** The mapping that a key at `at` would belong to. */
function mappingAt(all: Place[], at: number, path: Segment[]): Segment[] {
  const own = all.find((place) => place.path.length === path.length && placeOf(all, path) === place);
  return own?.key && own.key.from <= at && at <= own.key.to ? path.slice(0, -1) : path;
}

function kindAt(state: EditorState, all: Place[], path: Segment[]): string | undefined {
  for (let depth = path.length; depth > 0; depth -= 1) {
    const prefix = path.slice(0, depth);
    const kind = all.find((place) => place.path.length === depth + 1 && place.path.at(-1) === "kind" && prefix.every((segment, n) => segment === place.path[n]));
    if (kind) return state.sliceDoc(kind.from, kind.to).replace(/["']/g, "");
  }
  return undefined;
}

function keyText(label: string, before: string, text: string): string {
  const isJson = /^\s*[{[]/.test(text);
  if (before.endsWith('"')) return label;
  return isJson ? `"${label}": ` : `${label}: `;
}

export function CodeEditor(props: CodeEditorProps) {
  const { text, language, problems, label, ref } = props;
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const words = useRef(props.vocabulary);
  words.current = props.vocabulary;
  const mode = useRef(new Compartment());
  useEffect(() => {
    if (!place.current) return;
    const made = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: latest.current.text,
        extensions: [
          lineNumbers(), foldGutter(), lintGutter(), history(), drawSelection(), indentOnInput(), bracketMatching(), highlightActiveLine(), highlightActiveLineGutter(),
          syntaxHighlighting(colours), syntaxHighlighting(defaultHighlightStyle, { fallback: true }), autocompletion({ override: [complete(words)], activateOnTyping: true }),
          keymap.of([...completionKeymap, ...lintKeymap, ...foldKeymap, ...historyKeymap, ...defaultKeymap, indentWithTab]),
          EditorView.contentAttributes.of({ "aria-label": latest.current.label, tabindex: "0", spellcheck: "false", autocorrect: "off", autocapitalize: "off" }),
          mode.current.of(latest.current.language === "json" ? json() : yaml()),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange(update.state.doc.toString());
            if (update.selectionSet || update.docChanged) latest.current.onPath(pathAt(places(update.state), update.state.selection.main.head));
          }),
        ],
      }),
    });
    view.current = made;
    latest.current.onReady();
    return () => { made.destroy(); view.current = undefined; };
  }, []);
  useEffect(() => {
    const editor = view.current;
    if (editor && editor.state.doc.toString() !== text) editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
  }, [text]);
  useEffect(() => view.current?.dispatch({ effects: mode.current.reconfigure(language === "json" ? json() : yaml()) }), [language]);
  useEffect(() => {
    const editor = view.current;
    if (!editor) return;
    const all = places(editor.state);
    const marks = problems.map((problem): Diagnostic => ({ ...rangeOf(editor.state, all, problem), severity: problem.severity === "error" ? "error" : "warning", message: [problem.reason, problem.hint].filter(Boolean).join(" · ") }));
    marks.sort((a, b) => a.from - b.from);
    editor.dispatch(setDiagnostics(editor.state, marks));
  }, [problems, language]);
  useImperativeHandle(ref, () => ({
    show(where, isQuiet) {
      const editor = view.current;
      if (!editor) return;
      const found = "path" in where ? placeOf(places(editor.state), where.path) : undefined;
      const line = "line" in where ? editor.state.doc.line(Math.min(Math.max(1, where.line), editor.state.doc.lines)) : undefined;
      const at = found ? (found.key?.from ?? found.from) : line && "line" in where ? Math.min(line.to, line.from + where.column - 1) : undefined;
      if (at === undefined) return;
      editor.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
      if (!isQuiet) editor.focus();
    },
  }), []);
  return <div className="code-editor" ref={place} dir="ltr" data-label={label} />;
}
