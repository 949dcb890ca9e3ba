// Two texts side by side, or below each other where there is no room.
import { unifiedMergeView } from "@codemirror/merge";
import { json } from "@codemirror/lang-json";
import { yaml } from "@codemirror/lang-yaml";
import { EditorState } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { flowsWords } from "../../words/flows";
import { useWords } from "../../words/language";
import { isJson } from "../editor/draft";
import "./flows.css";

export function TextDiff({ before, after, label }: { before: string; after: string; label: string }) {
  const words = useWords(flowsWords).versions;
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!place.current || before === after) return;
    const view = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: after,
        extensions: [
          lineNumbers(), EditorState.readOnly.of(true), EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": "true" }), isJson(after) ? json() : yaml(),
          unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged: { margin: 3, minSize: 6 } }),
        ],
      }),
    });
    return () => view.destroy();
  }, [before, after, label]);
  if (before === after) return <p className="dim">{words.same}</p>;
  return <div ref={place} className="code-editor diff" dir="ltr" />;
}
