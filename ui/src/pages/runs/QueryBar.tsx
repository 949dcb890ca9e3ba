import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { call } from "../../api/client";
import { Icon } from "../../parts/Icon";
import { useWords } from "../../words/language";
import { runsWords } from "../../words/runs";
import { completions, type QueryTerm, terms, without, withTerm } from "./query";

interface QueryBarProps {
  query: string;
  onChange: (query: string) => void;
  /** The position of a mistake in the query. */
  wrongAt?: number;
}

/** Names of flows and accounts for the completion; asked for when the field gets the focus. */
function useKnown(isOn: boolean): Record<string, string[]> {
  const flows = useQuery({ queryKey: ["flow-names"], enabled: isOn, staleTime: 60_000, queryFn: ({ signal }) => call("GET /api/v1/flows", { query: { limit: 200 }, signal }) });
  const accounts = useQuery({ queryKey: ["account-names"], enabled: isOn, staleTime: 60_000, queryFn: ({ signal }) => call("GET /api/v1/accounts", { query: { limit: 200 }, signal }) });
  return { flow: flows.data?.items.map((flow) => flow.name) ?? [], account: accounts.data?.items.map((account) => account.id) ?? [] };
}

/** The query as chips, and a field for the next term with completion. */
export function QueryBar({ query, onChange, wrongAt }: QueryBarProps) {
  const words = useWords(runsWords);
  const [text, setText] = useState("");
  const [isFocused, setFocused] = useState(false);
  const [at, setAt] = useState(-1);
  const id = useId();
  const known = useKnown(isFocused);
  const offered = isFocused ? completions(text, known) : [];
  const isWrong = (term: QueryTerm) => wrongAt !== undefined && wrongAt >= term.from && wrongAt <= term.to;
  const add = (term: string) => {
    if (term.trim() === "") return;
    onChange(terms(term).reduce((all, one) => withTerm(all, one.text), query));
    setText("");
    setAt(-1);
  };
  const take = (n: number) => {
    const chosen = offered[n];
    if (!chosen) return;
    if (chosen.isWhole) add(chosen.text);
    else setText(chosen.text);
    setAt(-1);
  };
  const keys = (event: React.KeyboardEvent<HTMLInputElement>) => {
    const last = terms(query).at(-1);
    if (event.key === "Enter") {
      if (at >= 0) take(at);
      else add(text);
    } else if (event.key === "Tab" && text !== "" && offered.length > 0 && !event.shiftKey) take(Math.max(0, at));
    else if (event.key === "ArrowDown") setAt((old) => (old + 1) % Math.max(1, offered.length));
    else if (event.key === "ArrowUp") setAt((old) => (old <= 0 ? offered.length : old) - 1);
    else if (event.key === "Backspace" && text === "" && last) {
      onChange(without(query, last));
      setText(last.text);
    } else if (event.key === "Escape") event.currentTarget.blur();
    else return;
    event.preventDefault();
  };
  return (
    <div className="querybar grow" data-search>
      <div className="input">
        <Icon name="search" small />
        {terms(query).map((term) => <Chip key={term.from} term={term} isBad={isWrong(term)} onRemove={() => onChange(without(query, term))} />)}
        <input
          value={text} aria-label={words.query.label} placeholder={query ? "" : words.query.placeholder} autoComplete="off" spellCheck={false} dir="ltr"
          role="combobox" aria-expanded={offered.length > 0} aria-controls={id} aria-activedescendant={at >= 0 ? `${id}-${at}` : undefined}
          onChange={(event) => { setText(event.target.value); setAt(-1); }} onFocus={() => setFocused(true)} onBlur={() => setFocused(false)} onKeyDown={keys}
        />
        <kbd>/</kbd>
      </div>
      {offered.length > 0 && (
        <div className="offers" id={id} role="listbox" aria-label={words.query.label}>
          {offered.map((offer, n) => (
            <div key={offer.text} id={`${id}-${n}`} role="option" aria-selected={n === at} onMouseDown={(event) => { event.preventDefault(); take(n); }}>
              <code>{offer.text}</code>{offer.hint && <small>{(words.values as Record<string, string>)[offer.hint]}</small>}
            </div>
          ))}
        </div>
      )}
    </div>
  );
}

function Chip({ term, isBad, onRemove }: { term: QueryTerm; isBad: boolean; onRemove: () => void }) {
  const words = useWords(runsWords).query;
  const head = term.field ? `${term.isNegated ? "-" : ""}${term.field}${term.operator}` : term.isNegated ? "-" : "";
  return (
    <span className={`chip${isBad ? " bad" : ""}`}>
      <span className="cut" dir="ltr"><b>{head}</b>{term.value}</span>
      <button type="button" aria-label={words.remove(term.text)} onClick={onRemove}><Icon name="x" /></button>
    </span>
  );
}
