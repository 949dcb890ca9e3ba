import { memo, useMemo } from "react";
import { bytes } from "../format/number";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { pretty, tokens } from "./json";

/** A JSON text with colours. */
export const JsonText = memo(function JsonText({ text, fold, label }: { text: string; fold?: boolean; label?: string }) {
  const parts = useMemo(() => tokens(text), [text]);
  return (
    <pre className={`code${fold ? " fold" : ""}`} tabIndex={0} role="region" aria-label={label ?? "JSON"} dir="ltr">
      {parts.map(({ kind, text: part }, n) => (kind ? <span key={n} className={kind}>{part}</span> : part))}
    </pre>
  );
});

/** A JSON value, indented and coloured. */
export function Json({ value, label }: { value: unknown; label?: string }) {
  const words = useWords(commonWords).payload;
  const { text, isCut } = useMemo(() => pretty(value), [value]);
  return (
    <>
      <JsonText text={text} label={label} />
      {isCut && <span className="small faint">{words.cut(bytes(text.length), "JSON")}</span>}
    </>
  );
}
