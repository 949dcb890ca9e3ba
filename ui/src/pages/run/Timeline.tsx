import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, memo, useMemo, useRef } from "react";
import type { RunView } from "../../api/console";
import { useNow } from "../../format/now";
import { duration, ms } from "../../format/time";
import { inReadingOrder } from "../../graph/names";
import { Icon } from "../../parts/Icon";
import { isEnded, lookOf } from "../../parts/status";
import { useWords } from "../../words/language";
import { runWords } from "../../words/run";
import { type Segment, rowsOf, ticks, type TimelineRow } from "./timeline";

const ROW = 26;
const ROWS_SHOWN = 14;
/** The part of the axis where the flag of the current time hides a mark. */
const FLAG_SHARE = 0.06;

interface TimelineProps {
  view: RunView;
  selected?: string;
  onSelect: (path: string) => void;
}

/** Times of a run as lengths: one row for each node, with queue wait, work, back-off and waits. Lengths are CSS
 * expressions over two variables, so that the passing of time renders nothing again. */
export function Timeline({ view, selected, onSelect }: TimelineProps) {
  const words = useWords(runWords).timeline;
  const { start, end } = bounds(view);
  // Each patch brings new reasons; only back-offs and suspended calls matter here.
  const retries = view.why.filter((reason) => reason.waits_for === "retry" || reason.waits_for === "report");
  const rows = useMemo(() => rowsOf(view.attempts, start, retries, view.graph), [view.attempts, start, view.graph, retries.map((reason) => `${reason.node} ${reason.until}`).join()]);
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => scroller.current, estimateSize: () => ROW, overscan: 8 });
  return (
    <section className="timeline" aria-label={words.title}>
      <div className="strip"><h2>{words.title}</h2><span className="grow" /><Legend /></div>
      {rows.length === 0 ? <p className="faint none">{words.none}</p> : (
        <Clocked start={start} end={end} rows={rows}>
          <div ref={scroller} className="rows" style={{ maxHeight: ROW * ROWS_SHOWN + 4 }} tabIndex={0} role="group" aria-label={words.rows(rows.length)}>
            <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
              {virtual.getVirtualItems().map(({ index, start: top }) => {
                const row = rows[index];
                return row && <Row key={row.path} row={row} top={top} status={view.node_states[row.path]?.status} isSelected={row.path === selected} onSelect={onSelect} />;
              })}
            </div>
          </div>
        </Clocked>
      )}
      <Rest view={view} />
    </section>
  );
}

function bounds(view: RunView): { start: number; end: number | undefined } {
  const start = Math.min(ms(view.run.created_at) ?? Date.now(), ...view.attempts.slice(0, 50).map((attempt) => ms(attempt.queued_at) ?? ms(attempt.started_at) ?? Number.POSITIVE_INFINITY));
  return { start, end: isEnded(view.run.status) ? ms(view.run.ended_at ?? view.run.updated_at) : undefined };
}

/** The axis, and the variables: `--now` is the time since the start, `--span` the length of the axis. */
function Clocked({ start, end, rows, children }: { start: number; end: number | undefined; rows: TimelineRow[]; children: React.ReactNode }) {
  const ticking = useNow(1000);
  const now = Math.max(1, (end ?? Math.max(ticking, Date.now())) - start);
  const latest = rows.reduce((most, row) => Math.max(most, row.segments.at(-1)?.to ?? row.to ?? 0), 0);
  const span = Math.max(now, latest, 1) * 1.02;
  return (
    <div className="clocked" style={{ "--now": now, "--span": span } as CSSProperties}>
      <div className="axis" aria-hidden="true">
        {ticks(span).filter((at) => end !== undefined || Math.abs(at - now) / span > FLAG_SHARE).map((at) => <span key={at} style={{ left: `${(at / span) * 100}%` }}>{axisText(at)}</span>)}
        {end === undefined && <b style={{ left: `${(now / span) * 100}%` }}>{duration(now)}</b>}
      </div>
      <div className="marks" aria-hidden="true">
        {ticks(span).map((at) => <i key={at} style={{ left: `${(at / span) * 100}%` }} />)}
        {end === undefined && <i className="now" style={{ left: `${(now / span) * 100}%` }} />}
      </div>
      {children}
    </div>
  );
}

const axisText = (at: number) => (at === 0 ? "0" : at < 1000 ? `${at} ms` : at < 60_000 ? `${at / 1000} s` : duration(at));

const Row = memo(function Row({ row, top, status, isSelected, onSelect }: { row: TimelineRow; top: number; status: string | undefined; isSelected: boolean; onSelect: (path: string) => void }) {
  // The index of a branch is no node: its row has the status of its times.
  const look = lookOf(status ?? (row.to === undefined ? "running" : "completed"));
  return (
    <button type="button" className={`line${isSelected ? " sel" : ""}`} style={{ top }} aria-pressed={isSelected} onClick={() => onSelect(row.path)}>
      <span className={`name ${look.family}`} style={{ paddingLeft: 14 * Math.min(row.depth, 6) }}><Icon name={look.icon} small className="fg" /><span className="cut">{row.name}</span></span>
      <span className="bars">
        {row.segments.length === 0 && <Piece segment={{ kind: "queued", from: row.from, to: row.to, attempt: 0 }} isBox />}
        {row.segments.map((segment, n) => <Piece key={n} segment={segment} />)}
      </span>
      <RowTime row={row} />
    </button>
  );
});

/** The bars of a row alone, for the list of nodes at phone width. */
export function MiniBars({ row }: { row: TimelineRow | undefined }) {
  return <span className="mini">{row?.segments.map((segment, n) => <Piece key={n} segment={segment} />)}</span>;
}

function Piece({ segment, isBox }: { segment: Segment; isBox?: boolean }) {
  const words = useWords(runWords).timeline;
  const { kind, from, to } = segment;
  const name = { queued: words.queued, running: words.running, ok: words.ok, failed: words.failed, backoff: words.backoff, waiting: words.waiting, canceled: words.suspended }[kind];
  const style = { "--from": from, ...(to !== undefined && { "--to": to }) } as CSSProperties;
  return <i className={isBox ? "box" : kind} style={style} title={isBox ? undefined : words.segment(name, to === undefined ? "…" : duration(to - from))} />;
}

function RowTime({ row }: { row: TimelineRow }) {
  return <span className="took">{row.to === undefined ? "" : duration(row.to - row.from)}</span>;
}

function Legend() {
  const words = useWords(runWords).timeline;
  const kinds = ["queued", "running", "ok", "failed", "backoff", "waiting"] as const;
  return <span className="legend">{kinds.map((kind) => <span key={kind}><i className={kind} />{words[kind]}</span>)}</span>;
}

/** The nodes without a row: not started, and skipped. */
function Rest({ view }: { view: RunView }) {
  const words = useWords(runWords).timeline;
  const nodes = view.graph ? inReadingOrder(view.graph) : [];
  const names = (status: string) => nodes.filter((node) => !node.parent && node.kind !== "end" && (view.node_states[node.id]?.status ?? "pending") === status).map((node) => node.key.slice(0, 60));
  const list = (all: string[]) => (all.length > 8 ? words.andMore(all.slice(0, 8).join(", "), all.length - 8) : all.join(", "));
  const [todo, skipped] = [isEnded(view.run.status) ? [] : names("pending"), names("skipped")];
  if (todo.length === 0 && skipped.length === 0 && !view.more_attempts) return null;
  return (
    <p className="rest dim text">
      {todo.length > 0 && `${words.notStarted(list(todo))} `}{skipped.length > 0 && words.skipped(list(skipped))}{view.more_attempts && ` ${words.cut}`}
    </p>
  );
}
