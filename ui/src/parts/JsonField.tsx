import { useId } from "react";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { readJson } from "./json-input";

/** A field for JSON; the error stands below it while it is typed. */
export function JsonField({ label, value, onChange, hint, wants, rows = 6, autoFocus }: { label: string; value: string; onChange: (text: string) => void; hint?: string; wants?: "object" | "any"; rows?: number; autoFocus?: boolean }) {
  const words = useWords(commonWords).payload;
  const id = useId();
  const { error } = readJson(value, wants);
  return (
    <label className="field"><span>{label}</span>
      <textarea
        className="input mono code-input" rows={rows} value={value} spellCheck={false} autoComplete="off" dir="ltr" autoFocus={autoFocus}
        aria-invalid={error !== undefined} aria-describedby={id} onChange={(event) => onChange(event.target.value)}
      />
      <small id={id} className={error ? "err" : undefined}>{error ? `${words.notJson} ${error}` : hint}</small>
    </label>
  );
}
