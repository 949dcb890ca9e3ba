import type { CSSProperties } from "react";
import type { FlowGraph, RunView } from "../../api/console";
import { useNow } from "../../format/now";
import { duration, ms } from "../../format/time";
import { nameOf, readingOrder } from "../../graph/names";
import { doneOf } from "../../graph/overlay";
import { Icon } from "../../parts/Icon";
import { isEnded, lookOf } from "../../parts/status";
import { useStatusWord } from "../../parts/Status";
import { graphWords } from "../../words/graph";
import { useWords } from "../../words/language";
import type { TimelineRow } from "./timeline";
import { MiniBars } from "./Timeline";

const SHOWN = 200;

interface NodeListProps {
  view: RunView;
  graph: FlowGraph | undefined;
  rows: TimelineRow[];
  start: number;
  selected: string | undefined;
  onSelect: (path: string) => void;
}

/** The nodes as a list with small bars: the text form of the graph, and its place at phone width. */
export function NodeList({ view, graph, rows, start, selected, onSelect }: NodeListProps) {
  const ticking = useNow(1000);
  const end = isEnded(view.run.status) ? ms(view.run.ended_at ?? view.run.updated_at) : undefined;
  const now = Math.max(1, (end ?? ticking) - start);
  const places = graph ? readingOrder(graph) : new Map<string, number>();
  const bars = new Map(rows.map((row) => [row.path, row]));
  const paths = [...new Set([...Object.keys(view.node_states), ...(graph?.nodes ?? []).filter((node) => !node.id.includes("*") && node.kind !== "end").map((node) => node.id)])]
    .sort((a, b) => (places.get(a) ?? places.get(a.replace(/\/.*/, "")) ?? 1e9) - (places.get(b) ?? places.get(b.replace(/\/.*/, "")) ?? 1e9) || a.localeCompare(b, "en", { numeric: true }));
  return (
    <ul className="nodes" style={{ "--now": now, "--span": now * 1.02 } as CSSProperties}>
      {paths.slice(0, SHOWN).map((path) => <Item key={path} path={path} view={view} name={nameOf(graph, path)} row={bars.get(path)} isSelected={path === selected} onSelect={onSelect} />)}
    </ul>
  );
}

function Item({ path, name, view, row, isSelected, onSelect }: { path: string; name: string; view: RunView; row: TimelineRow | undefined; isSelected: boolean; onSelect: (path: string) => void }) {
  const words = useWords(graphWords);
  const word = useStatusWord();
  const info = view.node_states[path];
  const status = info?.status ?? "pending";
  const { family, icon } = lookOf(status);
  const branches = info?.branches;
  const text = branches?.total ? words.ofDone(doneOf(branches), branches.total)
    : status === "completed" && info?.action && info.action !== "default" ? `→ ${info.action}`
      : status === "completed" && row?.to !== undefined ? duration(row.to - row.from) : word(status);
  return (
    <li className={`${family}${isSelected ? " sel" : ""}`}>
      <button type="button" aria-pressed={isSelected} onClick={() => onSelect(path)} style={{ paddingLeft: 16 + 20 * Math.min(3, path.split("/").length - 1) }}>
        <Icon name={icon} className="fg" /><span className={`cut ${status === "pending" || status === "skipped" ? "faint" : "strong"}`}>{name}</span><span className="small dim cut">{text}</span>
        {row && <MiniBars row={row} />}
      </button>
    </li>
  );
}
