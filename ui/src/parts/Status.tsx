import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { Icon } from "./Icon";
import { lookOf } from "./status";

/** The word of a status in the viewer's language; an unknown one keeps its raw name. */
export function useStatusWord(): (status: string) => string {
  const words = useWords(commonWords);
  return (status) => (Object.hasOwn(words.status, status) ? (words.status[status] ?? status) : status);
}

/** A status that stands alone: in headers and panels. */
export function StatusPill({ status }: { status: string }) {
  const word = useStatusWord();
  const { family, icon, dashed } = lookOf(status);
  return (
    <span className={`pill ${family}${dashed ? " dashed" : ""}`} data-status={status} title={word(status) === status ? undefined : status}>
      <Icon name={icon} /><span>{word(status)}</span>
    </span>
  );
}

/** A status in a table: icon and word without an outline. */
export function StatusWord({ status }: { status: string }) {
  const word = useStatusWord();
  const { family, icon } = lookOf(status);
  return <span className={`bare ${family === "dead" ? "fail" : family}`} data-status={status}><Icon name={icon} /><span>{word(status)}</span></span>;
}
