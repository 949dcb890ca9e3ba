import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { asApiError, call, request } from "../../api/client";
import type { FlowInfo } from "../../api/openapi";
import { PageFrame } from "../../app/PageFrame";
import { useSearchParams } from "../../app/search-state";
import { counted } from "../../format/number";
import { useRefetch } from "../../live/use-refetch";
import { EmptyList, EmptyMatch } from "../../parts/Empty";
import { ErrorPanel } from "../../parts/Errors";
import { Icon } from "../../parts/Icon";
import { ListFoot, NewRows, useHeldRows, useList } from "../../parts/List";
import { Panel } from "../../parts/Panel";
import { useRowCursor } from "../../parts/rows";
import { lookOf } from "../../parts/status";
import { Ago } from "../../parts/Time";
import { toast } from "../../parts/Toasts";
import { flowsWords } from "../../words/flows";
import { useWords } from "../../words/language";
import "./flows.css";

const COUNTS_MS = 30_000;

type Counts = { counts: { value: string; count: number; more?: boolean }[] };

/** The runs of a flow in the last day as a bar of their results; each part links to its runs. */
function RunsOfDay({ flow }: { flow: string }) {
  const query = `flow:${quoted(flow)} after:24h`;
  const answer = useQuery({
    queryKey: ["flows", "counts", flow], staleTime: COUNTS_MS, refetchInterval: COUNTS_MS,
    queryFn: ({ signal }) => request<Counts>("GET", "/api/v1/runs/counts", { query: { query, by: "status" }, signal }),
  });
  const counts = (answer.data?.counts ?? []).filter(({ count: n }) => n > 0);
  const total = counts.reduce((sum, { count: n }) => sum + n, 0);
  const failed = counts.find(({ value }) => value === "failed");
  const isMore = counts.some(({ more }) => more);
  return (
    <>
      <td className="num">{total > 0 ? <Link to="/runs" search={{ query } as never}>{counted({ count: total, more: isMore })}</Link> : answer.isError ? <button type="button" className="link err" title={asApiError(answer.error).message} onClick={() => void answer.refetch()}>{asApiError(answer.error).code}</button> : <span className="faint">{answer.data ? 0 : "–"}</span>}</td>
      <td>
        <span className="results" aria-hidden="true">{counts.map(({ value, count: n }) => <i key={value} className={lookOf(value).family} style={{ flexGrow: n }} title={`${value} ${n}`} />)}</span>
        {failed && <Link className="err" to="/runs" search={{ query: `${query} status:failed` } as never}>{counted(failed)}</Link>}
      </td>
    </>
  );
}

export function FlowsPage() {
  const words = useWords(flowsWords);
  const [search, change] = useSearchParams();
  const list = useList<FlowInfo>(["flows", "list", search.q], (cursor, signal) => call("GET /api/v1/flows", { query: { q: search.q, cursor, limit: 100 }, signal }));
  useRefetch("flows", ["flows"]);
  const { rows, waiting, show } = useHeldRows(list.data, (flow) => flow.id, search.q ?? "");
  return (
    <PageFrame title={words.title} actions={<Link className="btn primary" to="/editor"><Icon name="plus" small />{words.newFlow}</Link>}>
      <Panel query={list}>
        {() => rows.length === 0 && !search.q
          ? <EmptyList icon="flows" title={words.none} text={words.noneText} command="windlass flow apply flow.yaml"><LoadExamples /></EmptyList>
          : (
            <>
              <div className="head"><label className="input" style={{ maxWidth: 320 }}><Icon name="search" small /><input data-search aria-label={words.filter} placeholder={words.filter} value={search.q ?? ""} onChange={(event) => change({ q: event.target.value || undefined })} /></label></div>
              {rows.length === 0
                ? <EmptyMatch filter={search.q ?? ""} onClear={() => change({ q: undefined })} />
                : <div className="holds-new"><NewRows waiting={waiting} onShow={show} /><FlowTable flows={rows} /><ListFoot list={list} shown={rows.length} /></div>}
            </>
          )}
      </Panel>
    </PageFrame>
  );
}

/** Publishes the example flows that the server has in its binary. */
function LoadExamples() {
  const words = useWords(flowsWords);
  const client = useQueryClient();
  const load = useMutation({
    mutationFn: () => request<{ published: unknown[] }>("POST", "/api/v1/examples", { body: {} }),
    onSuccess: ({ published }) => { toast(words.loaded(published.length)); void client.invalidateQueries({ queryKey: ["flows"] }); },
  });
  return (
    <>
      <button type="button" className="btn primary" disabled={load.isPending} onClick={() => load.mutate()}>{words.loadExamples}</button>
      {load.isError && <ErrorPanel error={load.error} onRetry={() => load.mutate()} />}
    </>
  );
}

/** The next start of each flow by a schedule, under the flow's name and its id. */
function useNextStarts() {
  const answer = useQuery({ queryKey: ["schedules", "next"], queryFn: ({ signal }) => call("GET /api/v1/schedules", { query: { limit: 1000 }, signal }) });
  useRefetch("schedules", ["schedules", "next"]);
  const next = new Map<string, { at: string; schedule: string }>();
  for (const { id, enabled, flow, next_runs: [at] } of answer.data?.schedules ?? []) {
    if (!enabled || !flow || !at) continue;
    const known = next.get(flow);
    if (!known || at < known.at) next.set(flow, { at, schedule: id });
  }
  return { next, answer };
}

function NextStart({ of }: { of: { at: string; schedule: string } | undefined }) {
  return <td className="dim wide">{of ? <Link to="/schedules/$schedule" params={{ schedule: of.schedule }}><Ago at={of.at} /></Link> : <span className="faint">–</span>}</td>;
}

function FlowTable({ flows }: { flows: FlowInfo[] }) {
  const words = useWords(flowsWords);
  const { next, answer } = useNextStarts();
  const navigate = useNavigate();
  const open = (n: number) => { const flow = flows[n]; if (flow) void navigate({ to: "/flows/$flow", params: { flow: flow.name } }); };
  const [at, setAt] = useRowCursor({ count: flows.length, open });
  return (
    <div className="frame">{answer.isError && <ErrorPanel error={answer.error} onRetry={() => void answer.refetch()} />}<div className="scroll"><table>
      <thead><tr><th>{words.head.name}</th><th className="num">{words.head.version}</th><th className="num">{words.head.runs}</th><th>{words.head.failed}</th><th className="wide">{words.head.next}</th><th>{words.head.labels}</th><th>{words.head.updated}</th><th><span className="hidden-text">{words.start}</span></th></tr></thead>
      <tbody>{flows.map((flow, n) => (
          <tr key={flow.id} data-row={n} className={`link-row${n === at ? " cursor" : ""}`} onClick={(event) => { if (!(event.target as Element).closest("a")) { setAt(n); open(n); } }}>
            <td className="cut"><Link to="/flows/$flow" params={{ flow: flow.name }}>{flow.name}</Link> {flow.description && <span className="faint">{flow.description}</span>}</td>
            <td className="num">{flow.latest_version}</td>
            <RunsOfDay flow={flow.name} />
            <NextStart of={next.get(flow.name) ?? next.get(flow.id)} />
            <td className="cut">{Object.entries(flow.labels).slice(0, 4).map(([key, value]) => <span key={key} className="tag">{key}={value}</span>)}</td>
            <td className="dim"><Ago at={flow.updated_at} /></td>
            <td className="num"><Link className="btn sm" to="/start" search={{ flow: flow.name } as never}>{words.start}</Link></td>
          </tr>
      ))}</tbody>
    </table></div></div>
  );
}

/** A value of the query language. */
export function quoted(value: string): string {
  return /^[\w./@-]+$/.test(value) ? value : JSON.stringify(value);
}
