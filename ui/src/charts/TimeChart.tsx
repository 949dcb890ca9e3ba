import { lazy, Suspense } from "react";
import type { Family } from "../parts/status";
import { Skeleton } from "../parts/Panel";
import type { SeriesAnswer } from "./series";

/** A line of a chart: its column, its word and its colour. */
export interface ChartLine {
  column: string;
  label: string;
  tone: Exclude<Family, "dead"> | "text";
  dash?: boolean;
}

export interface TimeChartProps {
  title: string;
  data: SeriesAnswer;
  lines: ChartLine[];
  unit: "count" | "perSecond" | "ms";
  /** Columns that stand on each other: counts of one step, whose sum is a count too. */
  stacked?: boolean;
  /** Charts with one key share the cursor. */
  sync?: string;
  height?: number;
}

const Plot = lazy(() => import("./Plot").then(({ Plot: component }) => ({ default: component })));

/** A chart of time series; the library comes with the first one. */
export function TimeChart(props: TimeChartProps) {
  return (
    <figure className="chart">
      <figcaption>
        <span className="strong">{props.title}</span>
        <span className="grow" />
        {props.lines.map(({ label, tone, column, dash }) => <span key={column} className={`key ${tone}${dash ? " dash" : ""}${props.stacked ? " filled" : ""}`}>{label}</span>)}
      </figcaption>
      <Suspense fallback={<div style={{ height: props.height ?? 150 }}><Skeleton lines={3} /></div>}><Plot {...props} /></Suspense>
    </figure>
  );
}
