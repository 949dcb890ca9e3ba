import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { call, request } from "../../api/client";
import type { FlowGraph } from "../../api/console";
import type { FlowDetail, RunSummary } from "../../api/openapi";
import { PageFrame } from "../../app/PageFrame";
import { useSearchParams, useSearchState } from "../../app/search-state";
import { shortId } from "../../format/number";
import { duration } from "../../format/time";
import { FlowGraphView } from "../../graph/FlowGraphView";
import { useRefetch } from "../../live/use-refetch";
import { CopyButton } from "../../parts/Copy";
import { EmptyList } from "../../parts/Empty";
import { Icon } from "../../parts/Icon";
import { ListFoot, NewRows, useHeldRows, useList } from "../../parts/List";
import { Panel, Skeleton } from "../../parts/Panel";
import { useRowCursor } from "../../parts/rows";
import { StatusWord } from "../../parts/Status";
import { Segments, Tabs } from "../../parts/Tabs";
import { Ago, Elapsed } from "../../parts/Time";
import { flowsWords } from "../../words/flows";
import { useWords } from "../../words/language";
import { ScheduleFormDialog } from "../schedules/ScheduleDialogs";
import { ScheduleTable, useSchedules } from "../schedules/SchedulesPage";
import { quoted } from "./FlowsPage";
import "./flows.css";

const Versions = lazy(() => import("./Versions").then(({ Versions: component }) => ({ default: component })));

const TABS = ["graph", "versions", "runs", "schedules", "nodes"] as const;

export function FlowPage() {
  const { flow: name } = useParams({ strict: false }) as { flow: string };
  const words = useWords(flowsWords);
  const flow = useQuery({ queryKey: ["flows", "one", name], queryFn: ({ signal }) => call("GET /api/v1/flows/{flow}", { path: { flow: name }, signal }) });
  useRefetch("flows", ["flows"]);
  return (
    <PageFrame
      title={flow.data?.name ?? name} parent={{ to: "/flows", label: words.title }}
      actions={flow.data && <>
        <Link className="btn wide" to="/editor" search={{ flow: flow.data.name } as never}><Icon name="edit" small />{words.edit}</Link>
        <Link className="btn primary" to="/start" search={{ flow: flow.data.name } as never}><Icon name="play" small />{words.start}</Link>
      </>}
    >
      <Panel query={flow}>{(detail) => <FlowBody flow={detail} />}</Panel>
    </PageFrame>
  );
}

function FlowBody({ flow }: { flow: FlowDetail }) {
  const words = useWords(flowsWords);
  const [tab] = useSearchState("tab", "graph");
  const current = (TABS as readonly string[]).includes(tab) ? tab : "graph";
  return (
    <>
      <div className="head">
        <h1 className="text">{flow.name}</h1><span className="ver">{words.version(flow.latest_version)}</span>
        <span className="mono dim">{shortId(flow.id)} <CopyButton text={flow.id} /></span>
        {Object.entries(flow.labels).map(([key, value]) => <span key={key} className="tag">{key}={value}</span>)}
      </div>
      {flow.description && <p className="dim text">{flow.description}</p>}
      <Tabs label={words.tabsLabel} current={current} items={TABS.map((id) => ({ id, label: words.tabs[id] }))} />
      {current === "graph" && <GraphTab flow={flow} />}
      {current === "versions" && <Suspense fallback={<Skeleton />}><Versions flow={flow} /></Suspense>}
      {current === "runs" && <FlowRuns flow={flow} />}
      {current === "schedules" && <FlowSchedules flow={flow} />}
      {current === "nodes" && <Durations flow={flow} />}
    </>
  );
}

export function useGraph(flow: string, version: number, direction: string) {
  return useQuery({
    queryKey: ["flow-graph", flow, version, direction], staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) => request<FlowGraph>("GET", `/api/v1/flows/${encodeURIComponent(flow)}/graph`, { query: { version, dir: direction }, signal }),
  });
}

function GraphTab({ flow }: { flow: FlowDetail }) {
  const words = useWords(flowsWords);
  const [search, change] = useSearchParams();
  const version = Number(search.version) || flow.latest_version;
  const direction = search.dir === "tb" ? "tb" : "lr";
  const graph = useGraph(flow.id, version, direction);
  const selected = graph.data?.nodes.find(({ id }) => id === search.node);
  const tools = (
    <>
      <label className="row"><span className="hidden-text">{words.versionField}</span>
        <select className="input compact" value={version} onChange={(event) => change({ version: Number(event.target.value) === flow.latest_version ? undefined : event.target.value, node: undefined })}>
          {Array.from({ length: flow.latest_version }, (_, n) => flow.latest_version - n).slice(0, 200).map((n) => <option key={n} value={n}>{words.version(n)}{n === flow.latest_version ? ` · ${words.latest}` : ""}</option>)}
        </select>
      </label>
      <Segments label={words.direction} value={direction} onChange={(dir) => change({ dir: dir === "lr" ? undefined : dir })} items={[{ id: "lr", label: "LR", title: words.lr }, { id: "tb", label: "TB", title: words.tb }]} />
    </>
  );
  return (
    <Panel query={graph} lines={8}>
      {(data) => (
        <>
          <div className="flow-graph"><FlowGraphView graph={data} name={flow.name} selected={search.node} onSelect={(id) => change({ node: id })} tools={tools} maxHeight="62vh" /></div>
          {selected && <dl className="facts"><dt>{words.keyHead}</dt><dd><code>{selected.id}</code></dd><dt>{words.kind}</dt><dd>{selected.word}{selected.detail && selected.detail !== selected.word && ` · ${selected.detail}`}</dd>{selected.path && <><dt>{words.path}</dt><dd><Link className="link mono" to="/editor" search={{ flow: flow.name, version: String(version), node: selected.id } as never}>{selected.path}</Link></dd></>}</dl>}
        </>
      )}
    </Panel>
  );
}

function FlowRuns({ flow }: { flow: FlowDetail }) {
  const words = useWords(flowsWords);
  const navigate = useNavigate();
  const list = useList<RunSummary>(["flow-runs", flow.id], (cursor, signal) => call("GET /api/v1/runs", { query: { flow: flow.id, cursor, limit: 50 }, signal }));
  useRefetch("runs", ["flow-runs", flow.id]);
  const { rows, waiting, show } = useHeldRows(list.data, (run) => run.id);
  const open = (n: number) => { const run = rows[n]; if (run) void navigate({ to: "/runs/$run", params: { run: run.id } }); };
  const [at, setAt] = useRowCursor({ count: rows.length, open });
  return (
    <Panel query={list}>
      {() => rows.length === 0
        ? <EmptyList icon="runs" title={words.noRuns} text={words.noRunsText} command={`windlass run start ${flow.name}`} />
        : (
          <div className="holds-new">
            <NewRows waiting={waiting} onShow={show} />
            <div className="frame"><div className="scroll"><table aria-label={words.tabs.runs}><tbody>
              {rows.map((run, n) => (
                <tr key={run.id} data-row={n} className={`link-row${n === at ? " cursor" : ""}`} onClick={(event) => { if (!(event.target as Element).closest("a")) { setAt(n); open(n); } }}>
                  <td><StatusWord status={run.status} /></td><td className="mono"><Link to="/runs/$run" params={{ run: run.id }}>{shortId(run.id)}</Link></td><td className="ver">@{run.version}</td><td className="cut mono dim">{run.node ?? ""}</td>
                  <td className="dim"><Ago at={run.created_at} /></td><td className="num dim"><Elapsed from={run.created_at} to={run.ended_at} /></td><td className="err clip">{run.error?.message ?? ""}</td>
                </tr>
              ))}
            </tbody></table></div></div>
            <div className="row"><ListFoot list={list} shown={rows.length} /><Link className="link" to="/runs" search={{ query: `flow:${quoted(flow.name)}` } as never}>{words.allRuns}</Link></div>
          </div>
        )}
    </Panel>
  );
}

function FlowSchedules({ flow }: { flow: FlowDetail }) {
  const words = useWords(flowsWords);
  const list = useSchedules(`flow ${flow.id}`, (schedule) => schedule.flow === flow.name || schedule.flow === flow.id);
  useRefetch("schedules", ["schedules"]);
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <div className="row"><span className="grow" /><button type="button" className="btn sm" onClick={() => setOpen(true)}><Icon name="plus" small />{words.newSchedule}</button></div>
      <Panel query={list}>
        {(schedules) => schedules.length === 0 && !list.hasNextPage
          ? <EmptyList icon="schedules" title={words.noSchedules} text={words.noRunsText} command={`windlass schedule create --cron '@hourly' --flow ${flow.name}`} />
          : <><ScheduleTable schedules={schedules} /><ListFoot list={list} shown={schedules.length} /></>}
      </Panel>
      {isOpen && <ScheduleFormDialog flow={flow.name} onClose={() => setOpen(false)} />}
    </>
  );
}

const STATS_MS = 10_000;

function Durations({ flow }: { flow: FlowDetail }) {
  const words = useWords(flowsWords).node;
  const stats = useQuery({ queryKey: ["flow-stats", flow.id], queryFn: ({ signal }) => call("GET /api/v1/flows/{flow}/stats", { path: { flow: flow.id }, signal }), refetchInterval: STATS_MS });
  const span = (ms: number | null | undefined) => (ms === null || ms === undefined ? "–" : duration(ms));
  return (
    <Panel query={stats}>
      {({ by_node }) => by_node.length === 0 ? <p className="dim">{words.none}</p> : (
        <div className="frame"><div className="scroll" tabIndex={0}><table>
          <thead><tr><th>{words.node}</th><th className="num">{words.ended}</th><th className="num">{words.failed}</th><th className="num">{words.p50}</th><th className="num">{words.p95}</th><th className="num">{words.max}</th><th className="num">{words.wait}</th><th className="num">{words.total}</th></tr></thead>
          <tbody>{by_node.map((node) => (
            <tr key={node.node}><td className="cut mono">{node.node}</td><td className="num">{node.succeeded + node.failed}</td><td className={`num${node.failed > 0 ? " err" : " faint"}`}>{node.failed}</td><td className="num">{span(node.duration_ms.p50)}</td><td className="num">{span(node.duration_ms.p95)}</td><td className="num dim">{span(node.duration_ms.max)}</td><td className="num dim">{span(node.waiting_ms?.p95)}</td><td className="num dim">{span(node.total_ms)}</td></tr>
          ))}</tbody>
        </table></div></div>
      )}
    </Panel>
  );
}
