import { useQuery } from "@tanstack/react-query";
import { memo, type PointerEvent, useCallback, useMemo, useState } from "react";
import { request, store, stored } from "../../api/client";
import type { FlowGraph, RunView } from "../../api/console";
import { useSearchParams } from "../../app/search-state";
import { FlowGraphView } from "../../graph/FlowGraphView";
import { nodeOf, type NodeOverlay, overlayOf, tally } from "../../graph/overlay";
import { ErrorPanel } from "../../parts/Errors";
import { useIsPhone } from "../../parts/media";
import { Segments } from "../../parts/Tabs";
import { ms } from "../../format/time";
import { graphWords } from "../../words/graph";
import { useWords } from "../../words/language";
import { runWords } from "../../words/run";
import type { ActionName } from "./dialogs";
import { NodeList } from "./NodeList";
import { NodePanel } from "./NodePanel";
import { Timeline } from "./Timeline";
import { rowsOf } from "./timeline";

/** Graph and timeline at the left, the selected node at the right; a list of nodes at phone width. */
export function GraphTab({ view, onAction }: { view: RunView; onAction: (action: ActionName) => void }) {
  const [search, change] = useSearchParams();
  const { graph, error, again, direction, turn } = useGraph(view);
  const overlays = useMemo(() => (graph ? overlayOf(graph, view.node_states, view.why) : new Map<string, NodeOverlay>()), [graph, view.node_states, view.why]);
  const select = useCallback((node: string | undefined) => change({ node }), [change]);
  const selected = search.node ?? troubled(view);
  const drawn = graph && selected ? nodeOf(graph, selected)?.id : undefined;
  const width = usePanelWidth();
  const isPhone = useIsPhone();
  const words = useWords(runWords).node;
  return (
    <div className="split" style={{ "--panel": `${width.value}px` } as React.CSSProperties}>
      <div className="panes">
        {isPhone ? <PhoneList view={view} graph={graph} selected={selected} onSelect={select} /> : <div>
          {error ? <div className="panel"><ErrorPanel error={error} onRetry={again} /></div> : graph && (
            <FlowGraphView graph={graph} name={view.run.flow.slice(0, 80)} overlays={overlays} selected={drawn} onSelect={select} onlyProblems={search.problems === "1"}
              tools={<GraphTools graph={graph} overlays={overlays} direction={direction} onTurn={turn} onSelect={select} />} />
          )}
          <Timeline view={view} selected={selected} onSelect={select} />
        </div>}
      </div>
      <div className="grip wide" role="separator" aria-orientation="vertical" aria-label={words.resize} tabIndex={0} aria-valuenow={width.value} aria-valuemin={280} aria-valuemax={720} onPointerDown={width.drag} onKeyDown={width.key} />
      <aside className="nodepane">
        <NodePanel view={view} graph={graph} selection={selected} onSelect={select} onAction={onAction} />
      </aside>
    </div>
  );
}

/** The node that is shown before one is selected: the one that failed, or waits for a person. */
function troubled(view: RunView): string | undefined {
  const failed = view.run.error?.node;
  if (failed && view.node_states[failed]) return failed;
  const waiting = view.why.find((reason) => reason.node && view.node_states[reason.node]);
  return waiting?.node ?? Object.keys(view.node_states).find((path) => view.node_states[path]?.status === "failed");
}

/** The layout of the view, or the other direction from the server. */
function useGraph(view: RunView): { graph: FlowGraph | undefined; error: unknown; again: () => void; direction: string; turn: (to: string) => void } {
  const [search, change] = useSearchParams();
  const own = view.graph ?? undefined;
  const direction = search.dir ?? own?.direction ?? "lr";
  const turned = useQuery({
    queryKey: ["run-graph", view.run.version_id, direction], enabled: own !== undefined && direction !== own.direction, staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) => request<FlowGraph>("GET", `/api/v1/runs/${view.run.id}/graph`, { query: { dir: direction }, signal }),
  });
  const graph = direction === own?.direction ? own : (turned.data ?? own);
  return { graph, error: turned.error, again: () => void turned.refetch(), direction, turn: (to) => change({ dir: to === own?.direction ? undefined : to }) };
}

function GraphTools({ graph, overlays, direction, onTurn, onSelect }: { graph: FlowGraph; overlays: Map<string, NodeOverlay>; direction: string; onTurn: (to: string) => void; onSelect: (id: string) => void }) {
  const words = useWords(graphWords);
  const [search, change] = useSearchParams();
  const sums = useMemo(() => tally(graph, overlays), [graph, overlays]);
  const parts = [sums.done > 0 && words.done(sums.done), sums.active > 0 && words.active(sums.active), sums.failed > 0 && words.failed(sums.failed), sums.todo > 0 && words.todo(sums.todo), sums.skipped > 0 && words.skipped(sums.skipped)];
  return (
    <>
      <span>{words.nodes(sums.total)}</span><span className="faint">{parts.filter(Boolean).join(", ")}</span><span className="grow" />
      {graph.nodes.length > 12 && <FindNode graph={graph} onSelect={onSelect} />}
      <label className="check"><input type="checkbox" checked={search.problems === "1"} onChange={(event) => change({ problems: event.target.checked ? "1" : undefined })} />{words.onlyProblems}</label>
      <Segments label={words.leftRight} value={direction} onChange={onTurn} items={[{ id: "lr", label: "LR", title: words.leftRight }, { id: "tb", label: "TB", title: words.topDown }]} />
    </>
  );
}

const FindNode = memo(function FindNode({ graph, onSelect }: { graph: FlowGraph; onSelect: (id: string) => void }) {
  const words = useWords(graphWords);
  const find = (text: string) => {
    const needle = text.toLowerCase();
    const node = graph.nodes.find((one) => one.id === text) ?? graph.nodes.find((one) => one.id.toLowerCase().includes(needle) || one.label.toLowerCase().includes(needle));
    if (needle && node) onSelect(node.id);
  };
  return (
    <>
      <input className="input findnode" list="graph-nodes" placeholder={words.find} aria-label={words.find} onKeyDown={(event) => event.key === "Enter" && find(event.currentTarget.value)} onChange={(event) => graph.nodes.some((node) => node.id === event.target.value) && find(event.target.value)} />
      <datalist id="graph-nodes">{graph.nodes.slice(0, 500).map((node) => <option key={node.id} value={node.id} />)}</datalist>
    </>
  );
});

function PhoneList({ view, graph, selected, onSelect }: { view: RunView; graph: FlowGraph | undefined; selected: string | undefined; onSelect: (id: string) => void }) {
  const start = ms(view.run.created_at) ?? 0;
  const rows = useMemo(() => rowsOf(view.attempts, start, view.why, graph), [view.attempts, start, view.why, graph]);
  return <NodeList view={view} graph={graph} rows={rows} start={start} selected={selected} onSelect={onSelect} />;
}

const clamp = (width: number) => Math.min(720, Math.max(280, width));

/** The width of the node panel; the browser remembers it. */
function usePanelWidth() {
  const [value, setValue] = useState(() => clamp(Number(stored("windlass.panel")) || 352));
  const set = (next: number) => {
    setValue(clamp(next));
    store("windlass.panel", String(clamp(next)));
  };
  return {
    value,
    drag(event: PointerEvent) {
      const [x, before] = [event.clientX, value];
      const grip = event.currentTarget as HTMLElement;
      grip.setPointerCapture(event.pointerId);
      grip.onpointermove = (move) => set(before + x - move.clientX);
      grip.onpointerup = () => { grip.onpointermove = null; };
    },
    key(event: React.KeyboardEvent) {
      if (event.key === "ArrowLeft") set(value + 20);
      else if (event.key === "ArrowRight") set(value - 20);
    },
  };
}
