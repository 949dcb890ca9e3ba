import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { call } from "../../api/client";
import type { RunView } from "../../api/console";
import type { JournalEntry } from "../../api/openapi";
import { useSearchState } from "../../app/search-state";
import { ErrorPanel } from "../../parts/Errors";
import { Skeleton } from "../../parts/Panel";
import { Clock } from "../../parts/Time";
import { useWords } from "../../words/language";
import { runWords } from "../../words/run";

const PAGE = 200;

/** The journal of the run: every entry with its events, filtered by kind. */
export function EventsTab({ view }: { view: RunView }) {
  const words = useWords(runWords).events;
  const [kind, setKind] = useSearchState("kind");
  const id = view.run.id;
  const journal = useInfiniteQuery({
    queryKey: ["journal", id], initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => call("GET /api/v1/runs/{id}/journal", { path: { id }, query: { cursor: pageParam, limit: PAGE }, signal }),
    getNextPageParam: (page) => page.next ?? undefined,
  });
  const entries = journal.data?.pages.flatMap((page) => page.items) ?? [];
  const isBehind = !journal.hasNextPage && entries.length > 0 && entries.length < view.run.len && !journal.isFetching;
  const { refetch } = journal;
  useEffect(() => {
    if (isBehind) void refetch();
  }, [isBehind, view.run.len, refetch]);
  if (journal.isError) return <div className="panel"><ErrorPanel error={journal.error} onRetry={() => void journal.refetch()} /></div>;
  if (!journal.data) return <Skeleton lines={8} />;
  const kinds = [...new Set(entries.flatMap((entry) => entry.events.map(kindOf)))].sort();
  const shown = kind ? entries.filter((entry) => entry.events.some((event) => kindOf(event) === kind)) : entries;
  return (
    <div className="eventstab">
      <div className="row wrap">
        <label className="row"><span className="small dim">{words.kind}</span>
          <select className="input" style={{ width: 200 }} value={kind} onChange={(event) => setKind(event.target.value || undefined)}>
            <option value="">{words.all}</option>{kinds.map((one) => <option key={one}>{one}</option>)}
          </select>
        </label>
      </div>
      <div className="frame scroll">
        <table>
          <thead><tr><th className="num">{words.entry}</th><th>{words.when}</th><th>{words.events}</th></tr></thead>
          <tbody>{shown.map((entry) => <Entry key={entry.seq} entry={entry} kind={kind} />)}</tbody>
        </table>
      </div>
      {journal.hasNextPage && <div><button type="button" className="btn" disabled={journal.isFetching} onClick={() => void journal.fetchNextPage()}>{words.newest}</button></div>}
    </div>
  );
}

const kindOf = (event: Record<string, unknown>) => String(event.e ?? "?");

function Entry({ entry, kind }: { entry: JournalEntry; kind: string }) {
  return (
    <tr>
      <td className="num dim at-top">{entry.seq}</td>
      <td className="dim at-top"><Clock at={entry.at} /></td>
      <td className="events">
        {entry.events.filter((event) => !kind || kindOf(event) === kind).map((event, n) => {
          const { e: _, node, ...rest } = event;
          const text = JSON.stringify(rest);
          return (
            <div key={n}><span className="tag">{kindOf(event)}</span>{node !== undefined && <span className="strong"> {String(node).slice(0, 120)}</span>}
              {text !== "{}" && <code className="data">{text.length > 600 ? `${text.slice(0, 600)}…` : text}</code>}
            </div>
          );
        })}
      </td>
    </tr>
  );
}
