// uPlot behind a component: colours come from the tokens, and the drawing follows the size of its place.
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useSettings } from "../format/settings";
import { absolute, duration } from "../format/time";
import type { SeriesAnswer } from "./series";
import { perSecond, stacked } from "./series";
import type { TimeChartProps } from "./TimeChart";
import "./charts.css";

/** The value of a token: a canvas knows no variables and no `light-dark()`. */
function colour(of: HTMLElement, token: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(--${token})`;
  of.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

const number = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });

function text(value: number, unit: TimeChartProps["unit"]): string {
  return unit === "ms" ? duration(value) : number.format(value);
}

/** The columns as they are said. */
function figures(data: SeriesAnswer, props: TimeChartProps): (number | null)[][] {
  return props.lines.map(({ column }) => (props.unit === "perSecond" ? perSecond(data.series[column], data.step) : (data.series[column] ?? [])));
}

/** The columns as they are drawn: of bars on each other the highest first, so that the others cover it. */
function columns(data: SeriesAnswer, props: TimeChartProps): uPlot.AlignedData {
  const drawn = figures(data, props);
  return [data.at, ...(props.stacked ? stacked(drawn).reverse() : drawn)] as uPlot.AlignedData;
}

const BARS = uPlot.paths.bars?.({ size: [0.8, 14, 1], gap: 1 });

/** The values under the cursor, in a line above the drawing; it always has its height. */
function readout(place: HTMLElement, latest: { current: TimeChartProps }, zone: "local" | "utc"): uPlot.Plugin {
  return {
    hooks: {
      setCursor(plot) {
        const at = plot.cursor.idx;
        const time = at === null || at === undefined ? undefined : plot.data[0][at];
        if (time === undefined || at === null || at === undefined) {
          place.textContent = " ";
          return;
        }
        const props = latest.current;
        const said = figures(props.data, props);
        const values = props.lines.map(({ label }, n) => {
          const value = said[n]?.[at];
          return `${label} ${value === null || value === undefined ? "–" : text(value, props.unit)}`;
        });
        place.textContent = [absolute(time * 1000, zone).slice(0, 16), ...values].join("  ·  ");
      },
    },
  };
}

export function Plot(props: TimeChartProps) {
  const { data, lines, unit, sync, height = 150 } = props;
  const { theme, zone } = useSettings();
  const place = useRef<HTMLDivElement>(null);
  const values = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const shape = JSON.stringify([lines, unit, sync, height, props.stacked]);
  useEffect(() => {
    const element = place.current;
    if (!element || !values.current) return;
    const axis = { stroke: colour(element, "text-3"), grid: { stroke: colour(element, "line"), width: 1 }, ticks: { show: false }, font: `11px ${getComputedStyle(element).fontFamily}` };
    const made = new uPlot({
      width: element.clientWidth || 300,
      height,
      padding: [8, 8, 0, 0],
      legend: { show: false },
      cursor: { sync: sync ? { key: sync } : undefined, points: { size: 6 }, y: false },
      tzDate: zone === "utc" ? (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC") : undefined,
      scales: { y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
      axes: [
        { ...axis, size: 24, gap: 4, space: 70, values: "{HH}:{mm}" as unknown as uPlot.Axis.Values },
        { ...axis, size: 56, space: 36, values: (_plot, ticks) => ticks.map((value) => text(value, unit)) },
      ],
      series: [
        {},
        ...(props.stacked ? [...lines].reverse() : lines).map(({ label, tone, dash }): uPlot.Series => {
          const stroke = colour(element, tone === "text" ? "text-2" : `${tone}-solid`);
          const look: Partial<uPlot.Series> = props.stacked ? { fill: stroke, width: 0, paths: BARS } : { width: 1.5, spanGaps: false, dash: dash ? [4, 3] : undefined };
          return { label, stroke, points: { show: false }, ...look };
        }),
      ],
      plugins: [readout(values.current, latest, zone)],
    }, columns(data, props), element);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => { observer.disconnect(); made.destroy(); plot.current = undefined; };
    // The data have an effect of their own: a new point must not build the drawing again.
  }, [shape, theme, zone, useDarkness()]);
  useEffect(() => plot.current?.setData(columns(data, props)), [data, shape]);
  const last = lines.map(({ column, label }) => {
    const known = (data.series[column] ?? []).filter((value): value is number => value !== null);
    const latest = known.at(-1);
    return `${label}: ${latest === undefined ? "–" : text(unit === "perSecond" ? latest / data.step : latest, unit)}`;
  });
  return (
    <>
      <div className="readout" ref={values} aria-hidden="true">{" "}</div>
      <div ref={place} role="img" aria-label={`${props.title}. ${last.join(", ")}`} style={{ height }} />
    </>
  );
}

/** Whether the page is dark now: the drawing must be made again when that changes. */
function useDarkness(): boolean {
  const { theme } = useSettings();
  return theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
}
