import type { RunCounts } from "../../api/console";
import { counted } from "../../format/number";
import { Icon } from "../../parts/Icon";
import { lookOf } from "../../parts/status";
import { useStatusWord } from "../../parts/Status";
import { useWords } from "../../words/language";
import { runsWords } from "../../words/runs";
import { valuesOf, withField } from "./query";

const ORDER = ["pending", "running", "waiting", "paused", "canceling", "failed", "canceled", "completed"];

/** How many runs match: the counts leave the status of the query aside, so `statuses` says which of them count. */
export function totalOf(counts: RunCounts | undefined, statuses: string[] = []): { count: number; more?: boolean } | undefined {
  if (!counts) return undefined;
  const of = counts.counts.filter((one) => statuses.length === 0 || statuses.includes(one.value));
  return { count: of.reduce((sum, one) => sum + one.count, 0), more: of.some((one) => one.more) };
}

/** The statuses with their counts; a click filters by one. */
export function StatusChips({ query, counts, onChange }: { query: string; counts: RunCounts | undefined; onChange: (query: string) => void }) {
  const words = useWords(runsWords);
  const word = useStatusWord();
  const chosen = valuesOf(query, "status");
  const total = totalOf(counts);
  const rank = (status: string) => (ORDER.includes(status) ? ORDER.indexOf(status) : ORDER.length);
  const shown = [...(counts?.counts ?? [])].filter((one) => one.count > 0 || chosen.includes(one.value)).sort((a, b) => rank(a.value) - rank(b.value));
  return (
    <div className="seg" role="group" aria-label={words.columns.status}>
      <button type="button" aria-pressed={chosen.length === 0} onClick={() => onChange(withField(query, "status", undefined))}>{words.all}{total && <small>{counted(total)}</small>}</button>
      {shown.map((one) => {
        const { family, icon } = lookOf(one.value);
        return (
          <button type="button" key={one.value} data-status={one.value} aria-pressed={chosen.includes(one.value)} onClick={() => onChange(withField(query, "status", chosen.length === 1 && chosen[0] === one.value ? undefined : one.value))}>
            <span className={`${family} row`}><Icon name={icon} small className="fg" /></span>{word(one.value)}<small>{counted(one)}</small>
          </button>
        );
      })}
    </div>
  );
}
