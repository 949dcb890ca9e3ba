import { memo, type ReactNode } from "react";
import type { GraphEdge, GraphNode } from "../api/console";
import { useTicking } from "../format/now";
import { duration, ms } from "../format/time";
import { lookOf } from "../parts/status";
import { graphWords } from "../words/graph";
import { useWords } from "../words/language";
import { pathOf } from "./path";

/** The state of a node as plain values: a node renders again only when one of them changes. */
export interface NodeMark {
  status?: string;
  word?: string;
  attempts?: number;
  done?: number;
  total?: number;
  /** Milliseconds since 1970; while `end` is absent the time goes on. */
  start?: number;
  end?: number;
  /** When the next attempt is made. */
  retryAt?: number;
  /** The action that the node chose. */
  action?: string;
  /** Another colour than that of a status: `added`, `removed`, `changed`, `bad`. */
  tone?: string;
}

interface GraphNodeProps extends NodeMark {
  node: GraphNode;
  isSelected: boolean;
  isFaded: boolean;
  isTabStop: boolean;
  onSelect?: (id: string) => void;
}

/** Characters that fit into the second line of a node. */
const fits = (width: number) => Math.max(4, Math.floor((width - 40) / 5.6));
/** Characters of Chinese, Japanese and Korean are as wide as two others. */
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/;

export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += WIDE.test(character) ? 2 : 1;
  return width;
}

export function cut(text: string, room: number): string {
  if (widthOf(text) <= room) return text;
  let kept = "";
  let left = room - 1;
  for (const character of text) {
    left -= widthOf(character);
    if (left < 0) break;
    kept += character;
  }
  return `${kept}…`;
}

/** The longest of the texts that fits; the last one is cut. */
const fitting = (room: number, ...texts: string[]) => texts.find((text) => widthOf(text) <= room) ?? cut(texts.at(-1) ?? "", room);

/** Tints are for nodes that are active or broken: done is quiet. */
const QUIET = new Set(["completed", "ok", "done", "pending", "skipped", "canceled"]);

export const NodeShape = memo(function NodeShape(props: GraphNodeProps) {
  const { node, status, tone, isSelected, isFaded, isTabStop, onSelect } = props;
  const look = status ? lookOf(status) : undefined;
  const name = ["node", look?.family, status && !QUIET.has(status) && "tint", status === "pending" && "pending", look?.dashed && "skipped",
    node.box && "box", isSelected && "on", isFaded && "faded", tone].filter(Boolean).join(" ");
  const { x, y, w, h } = node;
  if (node.kind === "end") return <g className="node end"><circle cx={x + w / 2} cy={y + h / 2} r={5} /></g>;
  return (
    <g
      className={name} role="button" tabIndex={isTabStop ? 0 : -1} data-node={node.id} data-status={status}
      aria-pressed={isSelected}
      onClick={() => onSelect?.(node.id)}
    >
      {isSelected && <rect className="ring" x={x - 3} y={y - 3} width={w + 6} height={h + 6} rx={node.box ? 12 : 10} />}
      <rect x={x + 0.5} y={y + 0.5} width={w - 1} height={h - 1} rx={node.box ? 10 : 7.5}><title>{node.label}</title></rect>
      {node.box ? <BoxText {...props} /> : <LeafText {...props} />}
      {(props.attempts ?? 0) > 1 && <Badge x={x + w - 8} y={y} text={`×${props.attempts}`} />}
      {/* The name of the button is its text, so the status and the kind are text too, which only screen readers get. */}
      <text className="said" x={x + 12} y={y + 12}>{[props.word ?? status, node.word].filter(Boolean).join(", ")}</text>
      {tone && tone !== "bad" && <Badge x={x + w - 8} y={y} text={{ added: "+", removed: "−", changed: "~" }[tone] ?? ""} />}
    </g>
  );
});

function LeafText({ node, status, done, total, ...mark }: GraphNodeProps) {
  const words = useWords(graphWords);
  const { x, y, w, h } = node;
  const hasIcon = status !== undefined;
  const left = x + (hasIcon ? 30 : 12);
  const first = node.detail?.split(" · ")[0] ?? node.word;
  const part = done !== undefined && total ? words.of(done, total) : undefined;
  return (
    <>
      {hasIcon && <use href={`#i-${lookOf(status).icon}`} className="i" x={x + 9} y={y + 8} width="14" height="14" />}
      <text className="t1" x={left} y={y + 19}>{node.short}</text>
      {part !== undefined || mark.start === undefined
        ? <text className="t2" x={left} y={y + 34}>{part === undefined ? cut(node.detail ?? node.word, fits(w)) : fitting(fits(w), `${first} · ${part}`, part)}</text>
        : <TimeText x={left} y={y + 34} room={fits(w)} before={first} {...mark} />}
      {part !== undefined && <ProgressBar x={x + 8} y={y + h - 6} width={w - 16} share={(done ?? 0) / (total ?? 1)} />}
    </>
  );
}

function BoxText({ node, status, done, total, word }: GraphNodeProps) {
  const words = useWords(graphWords);
  const { x, y, w } = node;
  const right = node.hidden ? words.notDrawn(node.hidden) : done !== undefined && total ? words.ofDone(done, total) : status === "pending" ? undefined : word;
  const room = Math.floor((w - 24) / 6.4);
  const kind = widthOf(node.short) + widthOf(node.word) + widthOf(right ?? "") + 3 < room ? node.word : undefined;
  return (
    <>
      <text className="t1" x={x + 12} y={y + 19}>{node.short}{kind && <tspan className="t2" dx="7">{kind}</tspan>}</text>
      {right !== undefined && widthOf(node.short) + widthOf(right) + 2 < room && <text className="t2 count" x={x + w - 12} y={y + 19} textAnchor="end">{right}</text>}
    </>
  );
}

function TimeText({ x, y, room, before, start, end, action, retryAt }: { x: number; y: number; room: number; before: string } & NodeMark) {
  const words = useWords(graphWords);
  const chosen = action && action !== "default" ? action : undefined;
  const text = useTicking((now) => {
    if (chosen) return fitting(room, `${before} · ${chosen}`, `→ ${chosen}`);
    const left = retryAt === undefined ? undefined : duration(Math.max(0, retryAt - now));
    if (left !== undefined) return fitting(room, `${before} · ${words.nextIn(left)}`, words.nextIn(left), left);
    const took = start === undefined ? before : duration(Math.max(0, (end ?? now) - start));
    return fitting(room, `${before} · ${took}`, took);
  });
  return <text className="t2" x={x} y={y}>{text}</text>;
}

function ProgressBar({ x, y, width, share }: { x: number; y: number; width: number; share: number }) {
  return (
    <>
      <rect className="track" x={x} y={y} width={width} height={3} rx={1.5} />
      {share > 0 && <rect className="filled" x={x} y={y} width={Math.max(3, width * Math.min(1, share))} height={3} rx={1.5} />}
    </>
  );
}

function Badge({ x, y, text }: { x: number; y: number; text: string }): ReactNode {
  const width = 8 + 7 * text.length;
  return <g className="badge"><rect x={x - width} y={y - 8} width={width} height={16} rx={8} /><text x={x - width / 2} y={y + 4} textAnchor="middle">{text}</text></g>;
}

export const EdgeShape = memo(function EdgeShape({ edge, state, isFaded }: { edge: GraphEdge; state: string; isFaded: boolean }) {
  return <path className={`edge ${state}${isFaded ? " faded" : ""}`} d={pathOf(edge.points)} markerEnd={`url(#arrow-${state === "took" ? "took" : "open"})`} />;
});

export const EdgeLabel = memo(function EdgeLabel({ edge, state }: { edge: GraphEdge; state: string }) {
  const box = edge.label_box;
  if (!box || !edge.short) return null;
  return (
    <g className={`edge-label ${state}`}>
      <title>{edge.label}</title>
      <rect className="lab" x={box.x} y={box.y} width={box.w} height={box.h} />
      <text x={box.x + box.w / 2} y={box.y + 12} textAnchor="middle">{edge.short}</text>
    </g>
  );
});

/** The mark of a node from an overlay's values. */
export function markOf(overlay: { status: string; attempts: number; retryAt?: number; progress?: { done: number; total: number }; info?: { started_at?: string | null; finished_at?: string | null; action?: string | null } } | undefined, word: (status: string) => string): NodeMark {
  if (!overlay) return { status: "pending", word: word("pending") };
  const { status, attempts, progress, info, retryAt } = overlay;
  return {
    status, word: word(status), attempts, retryAt, done: progress?.done, total: progress?.total,
    start: ms(info?.started_at), end: ms(info?.finished_at), action: info?.action ?? undefined,
  };
}
