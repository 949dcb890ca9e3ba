import { Fragment } from "react";

/** A sentence whose parts between backticks are shown as code. */
export function Marked({ text }: { text: string }) {
  return <span className="text">{text.split("`").map((part, n) => (n % 2 === 1 ? <code key={n}>{part}</code> : <Fragment key={n}>{part}</Fragment>))}</span>;
}
