import type { ReactNode } from "react";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";
import { CopyButton } from "./Copy";
import { Icon, type IconName } from "./Icon";

/** A list that has nothing yet: its purpose, one command that makes the first item, and a button. */
export function EmptyList({ icon, title, text, command, children }: { icon: IconName; title: string; text: ReactNode; command?: string; children?: ReactNode }) {
  const words = useWords(commonWords).action;
  return (
    <div className="empty" data-empty="nothing">
      <Icon name={icon} /><span className="strong">{title}</span><p className="dim">{text}</p>
      {command && <div className="row" style={{ maxWidth: "100%" }}><pre className="code fold">{command}</pre><CopyButton text={command} label={words.copy} /></div>}
      {children}
    </div>
  );
}

/** A list whose filter matches nothing: the filter, and a button that clears it. */
export function EmptyMatch({ filter, onClear }: { filter: string; onClear: () => void }) {
  const words = useWords(commonWords).empty;
  return (
    <div className="empty" data-empty="no-match">
      <Icon name="search" /><span className="strong">{words.noMatch}</span>
      {filter && <code className="text">{filter}</code>}
      <button type="button" className="btn" onClick={onClear}>{words.clear}</button>
    </div>
  );
}
