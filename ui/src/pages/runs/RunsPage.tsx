// The list of runs: query, counts by status, pages, selection and bulk actions.
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo, useRef, useState } from "react";
import { ApiError, call, request, store, stored } from "../../api/client";
import type { RunCounts } from "../../api/console";
import type { List, RunSummary } from "../../api/openapi";
import { PageFrame } from "../../app/PageFrame";
import { useSearchParams } from "../../app/search-state";
import { relative } from "../../format/time";
import { useTicking } from "../../format/now";
import { useTopic } from "../../live/live";
import { EmptyList, EmptyMatch } from "../../parts/Empty";
import { ErrorPanel } from "../../parts/Errors";
import { Icon } from "../../parts/Icon";
import { NewRows, useHeldRows } from "../../parts/List";
import { Menu } from "../../parts/Menu";
import { Skeleton } from "../../parts/Panel";
import { useRowCursor } from "../../parts/rows";
import { toast } from "../../parts/Toasts";
import { commonWords } from "../../words/common";
import { useWords } from "../../words/language";
import { runsWords } from "../../words/runs";
import { BulkBar } from "./BulkBar";
import { type ColumnId, COLUMNS, HIDDEN_FIRST } from "./columns";
import { errorPlace, valuesOf } from "./query";
import { QueryBar } from "./QueryBar";
import { RunRows } from "./RunRows";
import { SavedViews } from "./SavedViews";
import { StatusChips, totalOf } from "./StatusChips";
import "./runs.css";

const PAGE = 50;
/** The list is read again at most once in this time, however many runs change. */
const REFETCH_MS = 1_500;

function useRuns(query: string, cursor: string | undefined) {
  const client = useQueryClient();
  const runs = useQuery({
    queryKey: ["runs", query, cursor], placeholderData: keepPreviousData,
    queryFn: ({ signal }) => request<List<RunSummary>>("GET", "/api/v1/runs", { query: { query, cursor, limit: PAGE }, signal }),
  });
  const counts = useQuery({
    queryKey: ["run-counts", query], placeholderData: keepPreviousData, staleTime: 30_000, refetchInterval: 60_000,
    queryFn: ({ signal }) => request<RunCounts>("GET", "/api/v1/runs/counts", { query: { query, by: "status" }, signal }),
  });
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useTopic("runs", () => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      void client.invalidateQueries({ queryKey: ["runs"] });
    }, REFETCH_MS);
  });
  return { runs, counts };
}

export function RunsPage() {
  const words = useWords(runsWords);
  const common = useWords(commonWords).action;
  const [search, change] = useSearchParams();
  const query = search.query ?? "";
  const { runs, counts } = useRuns(query, search.cursor);
  const held = useHeldRows(runs.data?.items, (run) => run.id, `${query} ${search.cursor ?? ""}`);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [isAll, setAll] = useState(false);
  const pages = useRef<(string | undefined)[]>([]);
  const setQuery = (q: string) => {
    pages.current = [];
    clear();
    change({ query: q || undefined, cursor: undefined }, true);
  };
  const clear = () => { setSelected(new Set()); setAll(false); };
  const turn = (cursor: string | undefined) => { clear(); change({ cursor }, true); };
  const wrongAt = runs.error instanceof ApiError ? errorPlace(runs.error.errors[0]?.path ?? "") : undefined;
  const rows = held.rows;
  const total = totalOf(counts.data, valuesOf(query, "status"));
  const [hidden, setHidden] = useHiddenColumns();
  const columns = useMemo(() => COLUMNS.filter((column) => !hidden.includes(column.id)), [hidden]);
  const isFirst = search.cursor === undefined;
  return (
    <PageFrame title={words.title} actions={<Link className="btn primary" to="/start"><Icon name="plus" small />{words.start}</Link>}>
      <div className="row queryrow"><QueryBar query={query} onChange={setQuery} wrongAt={wrongAt} /><SavedViews query={query} onOpen={setQuery} /></div>
      <div className="row wrap">
        <StatusChips query={query} counts={counts.data} onChange={setQuery} />
        <NewRows waiting={isFirst ? held.waiting : 0} onShow={held.show} />
        <span className="grow" />
        <Link className="btn sm quiet" to="/bulk">{words.actions.bulk}</Link>
        <ColumnMenu hidden={hidden} onChange={setHidden} />
        <Export query={query} />
      </div>
      {runs.isError && <ErrorPanel error={runs.error} onRetry={() => void runs.refetch()} />}
      {counts.isError && !runs.isError && <ErrorPanel error={counts.error} onRetry={() => void counts.refetch()} />}
      {runs.data === undefined ? !runs.isError && <Skeleton lines={10} /> : rows.length === 0 && isFirst ? <Nothing query={query} onClear={() => setQuery("")} hasNext={runs.data.next != null} /> : (
        <RunTable rows={rows} columns={columns} selected={selected} setSelected={(next) => { setSelected(next); setAll(false); }} />
      )}
      {runs.data && (rows.length > 0 || !isFirst) && (
        <div className="foot">
          <Foot page={pages.current.length} rows={rows.length} at={counts.data?.at} isPartial={rows.length < PAGE && runs.data.next != null} />
          <span className="grow" />
          {!isFirst && <button type="button" className="btn sm" onClick={() => turn(pages.current.pop())}><Icon name="left" small />{common.newer}</button>}
          {runs.data.next != null && <button type="button" className="btn sm" onClick={() => { pages.current.push(search.cursor); turn(runs.data?.next ?? undefined); }}>{common.older}<Icon name="right" small /></button>}
        </div>
      )}
      {selected.size > 0 && <BulkBar query={query} selected={selected} isAll={isAll} total={total} isWholePage={rows.every((run) => selected.has(run.id))} onAll={() => setAll(true)} onClear={clear} />}
    </PageFrame>
  );
}

function RunTable({ rows, columns, selected, setSelected }: { rows: RunSummary[]; columns: typeof COLUMNS; selected: ReadonlySet<string>; setSelected: (next: ReadonlySet<string>) => void }) {
  const navigate = useNavigate();
  const latest = useRef<number | undefined>(undefined);
  const mark = (index: number, isRange: boolean) => {
    const next = new Set(selected);
    const from = isRange && latest.current !== undefined ? latest.current : index;
    const on = !selected.has(rows[index]?.id ?? "");
    for (let n = Math.min(from, index); n <= Math.max(from, index); n += 1) {
      const id = rows[n]?.id;
      if (id) on ? next.add(id) : next.delete(id);
    }
    latest.current = index;
    setSelected(next);
  };
  const open = (index: number) => {
    const id = rows[index]?.id;
    if (id) void navigate({ to: "/runs/$run", params: { run: id } as never });
  };
  const [cursor] = useRowCursor({ count: rows.length, open, mark });
  return <RunRows rows={rows} columns={columns} selected={selected} cursor={cursor} onMark={mark} onMarkAll={(on) => setSelected(on ? new Set(rows.map((run) => run.id)) : new Set())} />;
}

function Foot({ page, rows, at, isPartial }: { page: number; rows: number; at: string | undefined; isPartial: boolean }) {
  const words = useWords(runsWords);
  const time = useWords(commonWords).time;
  const age = useTicking((now) => (at ? relative(Date.parse(at), now, time) : ""));
  return <span>{words.foot(page * PAGE + 1, page * PAGE + rows)}{age && ` · ${words.counts(age)}`}{isPartial && ` · ${words.partial}`}</span>;
}

function Nothing({ query, onClear, hasNext }: { query: string; onClear: () => void; hasNext: boolean }) {
  const words = useWords(runsWords);
  const common = useWords(commonWords).empty;
  const client = useQueryClient();
  const load = useMutation({
    mutationFn: () => request("POST", "/api/v1/examples", { body: {} }),
    onSuccess: () => { toast(common.examples); void client.invalidateQueries(); },
  });
  if (query || hasNext) return <div className="frame"><EmptyMatch filter={query} onClear={onClear} /></div>;
  return (
    <div className="frame">
      <EmptyList icon="runs" title={words.empty.title} text={words.empty.text} command="windlass run start FLOW --watch">
        <button type="button" className="btn" disabled={load.isPending} onClick={() => load.mutate()}>{common.examples}</button>
        {load.isError && <ErrorPanel error={load.error} onRetry={() => load.mutate()} />}
      </EmptyList>
    </div>
  );
}

function useHiddenColumns(): [ColumnId[], (next: ColumnId[]) => void] {
  const [hidden, setHidden] = useState<ColumnId[]>(() => (stored("windlass.columns")?.split(",") as ColumnId[] | undefined) ?? HIDDEN_FIRST);
  return [hidden, (next) => { setHidden(next); store("windlass.columns", next.join(",")); }];
}

function ColumnMenu({ hidden, onChange }: { hidden: ColumnId[]; onChange: (next: ColumnId[]) => void }) {
  const words = useWords(runsWords).columns;
  return (
    <Menu className="btn sm quiet wide" button={<><Icon name="columns" small />{words.title}</>}>
      {() => COLUMNS.slice(2).map(({ id }) => (
        <label key={id}><input type="checkbox" checked={!hidden.includes(id)} onChange={(event) => onChange(event.target.checked ? hidden.filter((one) => one !== id) : [...hidden, id])} />{words[id]}</label>
      ))}
    </Menu>
  );
}

const EXPORT_MAX = 5_000;

/** Saves the runs that match, one JSON object per line. */
function Export({ query }: { query: string }) {
  const words = useWords(runsWords).actions;
  const save = useMutation({
    mutationFn: async () => {
      const lines: string[] = [];
      let cursor: string | undefined;
      do {
        const page = query
          ? await request<List<RunSummary>>("GET", "/api/v1/runs", { query: { query, cursor, limit: 500 } })
          : await call("GET /api/v1/runs", { query: { cursor, limit: 500 } });
        lines.push(...page.items.map((run) => JSON.stringify(run)));
        cursor = page.next ?? undefined;
      } while (cursor && lines.length < EXPORT_MAX);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([lines.join("\n")], { type: "application/jsonl" }));
      link.download = "runs.jsonl";
      link.click();
      URL.revokeObjectURL(link.href);
    },
    onError: (error) => toast(error.message, "fail", "x"),
  });
  return <button type="button" className="btn sm quiet wide" disabled={save.isPending} onClick={() => save.mutate()}><Icon name="download" small />{words.export}</button>;
}
