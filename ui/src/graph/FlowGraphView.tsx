// The drawing of a flow: nodes and edges at the places that the server computed, with zoom, pan and a keyboard walk.
import { type KeyboardEvent, memo, type ReactNode, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { FlowGraph, GraphNode } from "../api/console";
import { commonWords } from "../words/common";
import { graphWords } from "../words/graph";
import { useWords } from "../words/language";
import { useSettings } from "../format/settings";
import { Icon } from "../parts/Icon";
import { EdgeLabel, EdgeShape, markOf, type NodeMark, NodeShape } from "./Node";
import { edgeState, isProblem, type NodeOverlay } from "./overlay";
import { type Arrow, firstNode, walk } from "./walk";
import "./graph.css";

const ZOOM_MIN = 0.05;
const ZOOM_MAX = 2;
const ZOOM_STEP = 1.25;
const PAD = 12;
/** From this number of nodes on, boxes begin folded: their counters stand for the nodes inside. */
const FOLDED_FROM = 400;

interface FlowGraphProps {
  graph: FlowGraph;
  name: string;
  /** The states of a run; absent = the flow alone. */
  overlays?: Map<string, NodeOverlay>;
  /** Marks beside statuses: differences, errors. */
  tones?: Map<string, string>;
  selected?: string;
  onSelect?: (id: string) => void;
  onlyProblems?: boolean;
  /** Controls at the left of the zoom buttons. */
  tools?: ReactNode;
  /** Without controls and keys: a picture. */
  bare?: boolean;
  maxHeight?: string;
}

interface View { scale: number; x: number; y: number }

export function FlowGraphView({ graph: whole, ...props }: FlowGraphProps) {
  const [graph, fold] = useFolded(whole);
  const { name, overlays, tones, selected, onSelect, onlyProblems, tools, bare, maxHeight = "46vh" } = props;
  const words = useWords(graphWords);
  const frame = useRef<HTMLDivElement>(null);
  const [view, setView] = useView(graph, frame);
  const pan = usePan(setView);
  const zoom = useCallback((by: number) => setView((old) => zoomed(old, by, frame.current)), [setView]);
  const fit = useCallback(() => setView(fitted(graph, frame.current)), [graph, setView]);
  useWheelZoom(frame, setView);
  useReveal(graph, selected, frame, setView);
  const keys = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = moveOf(graph, selected ?? focusedNode(), event.key);
    if (move) {
      onSelect?.(move);
      frame.current?.querySelector<SVGGElement>(`[data-node="${CSS.escape(move)}"]`)?.focus({ preventScroll: true });
    } else if (event.key === "+" || event.key === "=") zoom(ZOOM_STEP);
    else if (event.key === "-") zoom(1 / ZOOM_STEP);
    else if (event.key === "0") fit();
    else if ((event.key === "Enter" || event.key === " ") && focusedNode()) onSelect?.(focusedNode() ?? "");
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div className="graph">
      {!bare && (
        <div className="strip">
          {tools ?? <span className="grow" />}
          {fold && <button type="button" className="btn sm quiet" aria-pressed={fold.isFolded} onClick={fold.toggle}>{fold.isFolded ? words.unfold(fold.hidden) : words.fold}</button>}
          <span className="row zooms">
            <button type="button" className="btn sm icon quiet" aria-label={words.zoomOut} title={words.zoomOut} onClick={() => zoom(1 / ZOOM_STEP)}><Icon name="minus" small /></button>
            <span className="zoom">{Math.round(view.scale * 100)} %</span>
            <button type="button" className="btn sm icon quiet" aria-label={words.zoomIn} title={words.zoomIn} onClick={() => zoom(ZOOM_STEP)}><Icon name="plus" small /></button>
            <button type="button" className="btn sm icon quiet" aria-label={words.fit} title={words.fit} onClick={fit}><Icon name="fit" small /></button>
            <button type="button" className="btn sm icon quiet wide" aria-label={words.fullScreen} title={words.fullScreen} onClick={() => void frame.current?.requestFullscreen?.().then(fit)}><Icon name="full" small /></button>
          </span>
        </div>
      )}
      {graph.more && <p className="small faint" style={{ padding: "0 var(--s5)" }}>{words.tooLarge}</p>}
      <div ref={frame} className="canvas" style={{ height: heightOf(graph, maxHeight) }} onKeyDown={bare ? undefined : keys} {...pan}>
        <svg width="100%" height="100%" role="group" aria-label={words.label(name)}>
          <Arrows />
          <g transform={`translate(${view.x} ${view.y}) scale(${view.scale})`} className={view.scale < 0.3 ? "far" : undefined}>
            <Drawing graph={graph} overlays={overlays} tones={tones} selected={selected} onSelect={onSelect} onlyProblems={onlyProblems} />
          </g>
        </svg>
      </div>
    </div>
  );
}

interface Fold { isFolded: boolean; hidden: number; toggle: () => void }

/** The drawing without the nodes inside of boxes, for a large flow; the viewer may unfold it. */
function useFolded(whole: FlowGraph): [FlowGraph, Fold | undefined] {
  const isLarge = whole.nodes.length >= FOLDED_FROM && whole.nodes.some((node) => node.box);
  const [isFolded, setFolded] = useState(true);
  const folded = useMemo(() => {
    const nodes = whole.nodes.filter((node) => !node.parent);
    const ids = new Set(nodes.map((node) => node.id));
    return { ...whole, nodes, edges: whole.edges.filter((edge) => ids.has(edge.from) && ids.has(edge.to)) };
  }, [whole]);
  if (!isLarge) return [whole, undefined];
  return [isFolded ? folded : whole, { isFolded, hidden: whole.nodes.length - folded.nodes.length, toggle: () => setFolded(!isFolded) }];
}

type DrawingProps = Pick<FlowGraphProps, "graph" | "overlays" | "tones" | "selected" | "onSelect" | "onlyProblems">;

/** All shapes: boxes, edges, leaves, labels. Zoom and pan do not render it again. */
const Drawing = memo(function Drawing({ graph, overlays, tones, selected, onSelect, onlyProblems }: DrawingProps) {
  const { language } = useSettings();
  const word = useCallback((status: string) => commonWords[language].status[status] ?? status, [language]);
  const [boxes, leaves] = useMemo(() => [graph.nodes.filter((node) => node.box), graph.nodes.filter((node) => !node.box)], [graph]);
  const stop = selected && graph.nodes.some((node) => node.id === selected) ? selected : firstNode(graph);
  const states = useMemo(() => graph.edges.map((edge) => (overlays ? edgeState(edge, overlays) : "open")), [graph, overlays]);
  // The element of a node is made again only when something of it changes: React then passes over the others.
  const drawn = useRef(new Map<string, { of: unknown[]; element: ReactNode }>());
  const shape = (node: GraphNode) => {
    const overlay = overlays?.get(node.id);
    const of = [node, overlay, overlays !== undefined, tones?.get(node.id), node.id === selected, node.id === stop, onlyProblems, onSelect, word];
    const before = drawn.current.get(node.id);
    if (before && of.every((one, n) => one === before.of[n])) return before.element;
    const mark: NodeMark = overlays ? markOf(overlay, word) : {};
    const element = (
      <NodeShape
        key={node.id} node={node} {...mark} tone={tones?.get(node.id)} isSelected={node.id === selected} isTabStop={node.id === stop}
        isFaded={onlyProblems === true && !isProblem(overlay)} onSelect={onSelect}
      />
    );
    drawn.current.set(node.id, { of, element });
    return element;
  };
  return (
    <>
      {boxes.map(shape)}
      {graph.edges.map((edge, n) => <EdgeShape key={edge.id} edge={edge} state={states[n] ?? "open"} isFaded={onlyProblems === true} />)}
      {leaves.map(shape)}
      {graph.edges.map((edge, n) => (edge.short ? <EdgeLabel key={edge.id} edge={edge} state={states[n] ?? "open"} /> : null))}
    </>
  );
});

function Arrows() {
  const marker = (id: string) => (
    <marker id={`arrow-${id}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto">
      <path className={`head ${id}`} d="M1.5 1l5.5 3-5.5 3z" />
    </marker>
  );
  return <defs>{marker("open")}{marker("took")}</defs>;
}

const focusedNode = () => (document.activeElement instanceof SVGElement ? document.activeElement.dataset.node : undefined);

function moveOf(graph: FlowGraph, from: string | undefined, key: string): string | undefined {
  if (key === "Home") return firstNode(graph);
  if (!key.startsWith("Arrow")) return undefined;
  return from === undefined ? firstNode(graph) : walk(graph, from, key as Arrow);
}

/** A small graph gets the height it needs at 100 %; a large one as much as there may be. */
function heightOf(graph: FlowGraph, max: string): string {
  return `clamp(140px, ${Math.ceil(graph.height + 2 * PAD)}px, ${max})`;
}

function fitted(graph: FlowGraph, frame: HTMLElement | null): View {
  const [width, height] = [frame?.clientWidth || 800, frame?.clientHeight || 400];
  const scale = Math.min(1, (width - 2 * PAD) / graph.width, (height - 2 * PAD) / graph.height);
  return centred(graph, Math.max(ZOOM_MIN, scale), width, height);
}

function centred(graph: FlowGraph, scale: number, width: number, height: number): View {
  return { scale, x: Math.max(PAD, (width - graph.width * scale) / 2), y: Math.max(PAD, (height - graph.height * scale) / 2) };
}

/** Fits the drawing when it is new. A drawing that would become too small to read begins at its start instead. */
function useView(graph: FlowGraph, frame: { current: HTMLDivElement | null }): [View, (change: View | ((old: View) => View)) => void] {
  const [view, setView] = useState<View>({ scale: 1, x: PAD, y: PAD });
  useLayoutEffect(() => {
    const next = fitted(graph, frame.current);
    setView(next.scale < 0.5 && graph.nodes.length < 400 ? { ...next, scale: 0.6, x: PAD, y: Math.max(PAD, ((frame.current?.clientHeight ?? 400) - graph.height * 0.6) / 2) } : next);
  }, [graph, frame]);
  return [view, setView];
}

function zoomed(old: View, by: number, frame: HTMLElement | null, at?: { x: number; y: number }): View {
  const scale = Math.min(ZOOM_MAX, Math.max(ZOOM_MIN, old.scale * by));
  const point = at ?? { x: (frame?.clientWidth ?? 0) / 2, y: (frame?.clientHeight ?? 0) / 2 };
  const ratio = scale / old.scale;
  return { scale, x: point.x - (point.x - old.x) * ratio, y: point.y - (point.y - old.y) * ratio };
}

function usePan(setView: (change: (old: View) => View) => void) {
  const from = useRef<{ x: number; y: number } | undefined>(undefined);
  return {
    onPointerDown(event: React.PointerEvent) {
      if (event.button === 0 && !(event.target as Element).closest("[data-node]")) {
        from.current = { x: event.clientX, y: event.clientY };
        event.currentTarget.setPointerCapture(event.pointerId);
      }
    },
    onPointerMove(event: React.PointerEvent) {
      const start = from.current;
      if (!start) return;
      const [dx, dy] = [event.clientX - start.x, event.clientY - start.y];
      from.current = { x: event.clientX, y: event.clientY };
      setView((old) => ({ ...old, x: old.x + dx, y: old.y + dy }));
    },
    onPointerUp: () => { from.current = undefined; },
    onPointerCancel: () => { from.current = undefined; },
  };
}

/** Zooms with Ctrl or Cmd and the wheel: the wheel alone scrolls the page. */
function useWheelZoom(frame: { current: HTMLDivElement | null }, setView: (change: (old: View) => View) => void) {
  useEffect(() => {
    const element = frame.current;
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = element?.getBoundingClientRect();
      setView((old) => zoomed(old, Math.exp(-event.deltaY / 300), element, { x: event.clientX - (box?.left ?? 0), y: event.clientY - (box?.top ?? 0) }));
    };
    element?.addEventListener("wheel", wheel, { passive: false });
    return () => element?.removeEventListener("wheel", wheel);
  }, [frame, setView]);
}

/** Moves the drawing so that a newly selected node is inside of the frame. */
function useReveal(graph: FlowGraph, selected: string | undefined, frame: { current: HTMLDivElement | null }, setView: (change: (old: View) => View) => void) {
  useEffect(() => {
    const node = graph.nodes.find((one) => one.id === selected);
    const element = frame.current;
    if (!node || !element) return;
    setView((old) => {
      const [left, top] = [old.x + node.x * old.scale, old.y + node.y * old.scale];
      const [right, bottom] = [left + node.w * old.scale, top + node.h * old.scale];
      const dx = left < PAD ? PAD - left : right > element.clientWidth - PAD ? Math.min(element.clientWidth - PAD - right, 0) : 0;
      const dy = top < PAD ? PAD - top : bottom > element.clientHeight - PAD ? Math.min(element.clientHeight - PAD - bottom, 0) : 0;
      return dx === 0 && dy === 0 ? old : { ...old, x: old.x + dx, y: old.y + dy };
    });
  }, [graph, selected, frame, setView]);
}

