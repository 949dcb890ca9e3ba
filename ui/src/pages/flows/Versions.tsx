import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { call, request } from "../../api/client";
import type { FlowGraph } from "../../api/console";
import type { FlowDetail, FlowDiff, VersionSummary } from "../../api/openapi";
import { useSearchParams } from "../../app/search-state";
import { FlowGraphView } from "../../graph/FlowGraphView";
import { Icon } from "../../parts/Icon";
import { Panel, Skeleton } from "../../parts/Panel";
import { StatusWord } from "../../parts/Status";
import { Segments } from "../../parts/Tabs";
import { Ago } from "../../parts/Time";
import { flowsWords } from "../../words/flows";
import { useWords } from "../../words/language";
import { readable } from "../editor/draft";
import { Changes } from "../run/StateTab";
import { useGraph } from "./FlowPage";

const TextDiff = lazy(() => import("./TextDiff").then(({ TextDiff: component }) => ({ default: component })));

interface NodeChange { node: string; kind: string; pointers: string[] }
type Diff = FlowDiff & { nodes?: NodeChange[]; before_text?: string; after_text?: string };

/** The versions of a flow; any two can be compared. */
export function Versions({ flow }: { flow: FlowDetail }) {
  const words = useWords(flowsWords).versions;
  const [search, change] = useSearchParams();
  const versions = useQuery({ queryKey: ["flows", "versions", flow.id], queryFn: ({ signal }) => call("GET /api/v1/flows/{flow}/versions", { path: { flow: flow.id }, signal }) });
  const to = Number(search.to) || flow.latest_version;
  const from = Number(search.from) || Math.max(1, to - 1);
  return (
    <>
      <Panel query={versions}>
        {({ items }) => (
          <div className="frame"><div className="scroll"><table>
            <thead><tr><th>{words.version}</th><th>{words.status}</th><th>{words.form}</th><th>{words.note}</th><th>{words.published}</th><th>{words.from}</th><th>{words.to}</th><th><span className="hidden-text">{words.openEditor}</span></th></tr></thead>
            <tbody>{items.map((version: VersionSummary) => (
              <tr key={version.version}>
                <td><Link to="." search={(old: object) => ({ ...old, tab: undefined, version: String(version.version) }) as never}>{version.version}</Link></td><td><StatusWord status={version.status} /></td><td className="dim">{version.form}</td><td className="clip" title={version.note}>{version.note}</td><td className="dim"><Ago at={version.created_at} /></td>
                <td><input type="radio" name="from" aria-label={words.selectOld(version.version)} checked={version.version === from} onChange={() => change({ from: String(version.version), to: String(to) })} /></td>
                <td><input type="radio" name="to" aria-label={words.selectNew(version.version)} checked={version.version === to} onChange={() => change({ to: String(version.version), from: String(from) })} /></td>
                <td className="num"><Link className="btn sm" to="/editor" search={{ flow: flow.name, version: String(version.version) } as never}>{words.openEditor}</Link></td>
              </tr>
            ))}</tbody>
          </table></div></div>
        )}
      </Panel>
      {flow.latest_version > 1 && from !== to ? <Difference flow={flow} from={from} to={to} /> : <p className="dim">{flow.latest_version > 1 ? words.none : words.only}</p>}
    </>
  );
}

type View = "text" | "graph" | "fields";

function Difference({ flow, from, to }: { flow: FlowDetail; from: number; to: number }) {
  const words = useWords(flowsWords).versions;
  const [search, change] = useSearchParams();
  const view: View = search.diff === "graph" || search.diff === "fields" ? search.diff : "text";
  const diff = useQuery({
    queryKey: ["flow-diff", flow.id, from, to], staleTime: Number.POSITIVE_INFINITY, placeholderData: keepPreviousData,
    queryFn: ({ signal }) => request<Diff>("GET", `/api/v1/flows/${encodeURIComponent(flow.id)}/diff`, { query: { from, to }, signal }),
  });
  return (
    <section className="stack">
      <div className="row"><h2>{from} → {to}</h2><span className="grow" /><Segments<View> label={words.views} value={view} onChange={(next) => change({ diff: next === "text" ? undefined : next })} items={[{ id: "text", label: words.text }, { id: "graph", label: words.graph }, { id: "fields", label: words.fields }]} /></div>
      <Panel query={diff}>
        {(data) => data.changes.length === 0 && data.before_text === data.after_text
          ? <p className="dim">{words.same}</p>
          : view === "graph" ? <GraphDiff flow={flow} diff={data} />
            : view === "fields" ? <><Changes changes={data.changes} />{data.more && <p className="small faint">{words.more}</p>}</>
              : <Suspense fallback={<Skeleton />}><TextDiff before={readable(data.before_text ?? "")} after={readable(data.after_text ?? "")} label={`${from} → ${to}`} /></Suspense>}
      </Panel>
    </section>
  );
}

/** The nodes of a change as tones of a drawing: a node inside of a changed one is named by its whole path. */
function tonesOf(graph: FlowGraph, nodes: NodeChange[], kinds: string[]): Map<string, string> {
  const byId = new Map(nodes.filter(({ kind }) => kinds.includes(kind)).map(({ node, kind }) => [node, kind]));
  return new Map(graph.nodes.flatMap(({ id, key }): [string, string][] => {
    const kind = byId.get(id) ?? byId.get(key);
    return kind ? [[id, kind]] : [];
  }));
}

/** Both drawings: the older one shows what went, the newer one what came and what changed. */
function GraphDiff({ flow, diff }: { flow: FlowDetail; diff: Diff }) {
  const words = useWords(flowsWords);
  const [before, after] = [useGraph(flow.id, diff.from, "lr"), useGraph(flow.id, diff.to, "lr")];
  const nodes = diff.nodes ?? [];
  const looks: Record<string, { family: string; icon: "plus" | "minus" | "edit" }> = { added: { family: "ok", icon: "plus" }, removed: { family: "fail", icon: "minus" }, changed: { family: "retry", icon: "edit" } };
  return (
    <>
      <div className="cols">
        <Panel query={before}>{(graph) => <figure className="flow-graph"><figcaption className="small dim">{words.versions.before} · {words.version(diff.from)}</figcaption><FlowGraphView graph={graph} name={flow.name} tones={tonesOf(graph, nodes, ["removed", "changed"])} /></figure>}</Panel>
        <Panel query={after}>{(graph) => <figure className="flow-graph"><figcaption className="small dim">{words.versions.after} · {words.version(diff.to)}</figcaption><FlowGraphView graph={graph} name={flow.name} tones={tonesOf(graph, nodes, ["added", "changed"])} /></figure>}</Panel>
      </div>
      <ul className="list frame">
        {nodes.map(({ node, kind, pointers }) => {
          const look = looks[kind] ?? { family: "idle", icon: "edit" as const };
          return <li key={`${kind} ${node}`} data-change={kind}><span className={`bare ${look.family}`}><Icon name={look.icon} small /><span>{words.change[kind] ?? kind}</span></span><code>{node}</code><span className="small faint cut mono">{pointers.slice(0, 8).join("  ")}</span></li>;
        })}
      </ul>
    </>
  );
}
