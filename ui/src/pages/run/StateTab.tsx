import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { call } from "../../api/client";
import type { RunView } from "../../api/console";
import type { DefinitionChange, RunState, StateDiff } from "../../api/openapi";
import { useSearchParams } from "../../app/search-state";
import { FlowGraphView } from "../../graph/FlowGraphView";
import { overlayOf } from "../../graph/overlay";
import { useKeys } from "../../keys/keys";
import { ErrorPanel } from "../../parts/Errors";
import { Icon } from "../../parts/Icon";
import { Json } from "../../parts/Json";
import { Marked } from "../../parts/Marked";
import { Skeleton } from "../../parts/Panel";
import { StatusPill, StatusWord } from "../../parts/Status";
import { Clock } from "../../parts/Time";
import { commonWords } from "../../words/common";
import { useWords } from "../../words/language";
import { runWords } from "../../words/run";
import { isRuntimeKey, partsOf, pathText } from "./state";

/** The shared state after each step of the journal, with the difference to the step before; the drawing shows the run
 * as it was then. */
export function StateTab({ view }: { view: RunView }) {
  const words = useWords(runWords).state;
  const [search, change] = useSearchParams();
  const all = view.run.len;
  const at = Math.min(Math.max(1, Number(search.step) || all), all);
  const go = (step: number) => change({ step: step >= all ? undefined : String(Math.max(1, step)) });
  useKeys([
    { keys: "ArrowLeft", label: (of) => runWords[of].state.before, run: () => go(at - 1) },
    { keys: "ArrowRight", label: (of) => runWords[of].state.slider, run: () => go(at + 1) },
  ], (of) => runWords[of].tabs.state);
  const path = { id: view.run.id };
  const state = useQuery({ queryKey: ["run-state", view.run.id, at], queryFn: ({ signal }) => call("GET /api/v1/runs/{id}/state", { path, query: { at }, signal }), placeholderData: keepPreviousData, staleTime: Number.POSITIVE_INFINITY });
  const diff = useQuery({ queryKey: ["run-diff", view.run.id, at], queryFn: ({ signal }) => call("GET /api/v1/runs/{id}/state/diff", { path, query: { from: at - 1, to: at }, signal }), enabled: at > 1, placeholderData: keepPreviousData, staleTime: Number.POSITIVE_INFINITY });
  return (
    <div className="statetab">
      <div className="steps">
        <button type="button" className="btn sm icon" aria-label={words.before} disabled={at <= 1} onClick={() => go(at - 1)}><Icon name="left" small /></button>
        <input type="range" min={1} max={all} value={at} aria-label={words.slider} aria-valuetext={words.step(at, all)} onChange={(event) => go(Number(event.target.value))} />
        <button type="button" className="btn sm icon" aria-label={words.slider} disabled={at >= all} onClick={() => go(at + 1)}><Icon name="right" small /></button>
        <span className="strong">{words.step(at, all)}</span>
        {state.data && <><StatusPill status={state.data.status} /><span className="dim small"><Clock at={state.data.time} /></span></>}
      </div>
      {state.isError && <ErrorPanel error={state.error} onRetry={() => void state.refetch()} />}
      {diff.isError && <ErrorPanel error={diff.error} onRetry={() => void diff.refetch()} />}
      {state.data ? <Step view={view} state={state.data} diff={at > 1 ? diff.data : undefined} /> : <Skeleton lines={6} />}
    </div>
  );
}

function Step({ view, state, diff }: { view: RunView; state: RunState; diff: StateDiff | undefined }) {
  const words = useWords(runWords).state;
  const [showRuntime, setShowRuntime] = useState(false);
  const overlays = useMemo(() => (view.graph ? overlayOf(view.graph, untilThen(state)) : undefined), [view.graph, state]);
  const shared = useMemo(() => (showRuntime ? state.shared : Object.fromEntries(Object.entries(state.shared).filter(([key]) => !isRuntimeKey(key)))), [state.shared, showRuntime]);
  const { shared: changed, moves, others } = useMemo(() => partsOf(diff?.changes ?? [], showRuntime), [diff, showRuntime]);
  const signals = Object.keys(state.signals).length > 0;
  return (
    <>
      {view.graph && overlays && <div className="frame wide"><FlowGraphView graph={view.graph} name={view.run.flow.slice(0, 80)} overlays={overlays} bare maxHeight="220px" /></div>}
      <div className="statecols">
        <section className="stack">
          <h2>{words.changes}</h2>
          <Changes changes={changed} />
          {moves.length > 0 && <ul className="moves">{moves.map((move) => <li key={move.node}><code>{move.node}</code><StatusWord status={move.to} /></li>)}</ul>}
          {others.length > 0 && <details><summary className="sec">{words.others(others.length)}</summary><Changes changes={others} /></details>}
          {diff?.more && <p className="small faint">{words.tooMany}</p>}
          <label className="check small"><input type="checkbox" checked={showRuntime} onChange={(event) => setShowRuntime(event.target.checked)} /><Marked text={words.runtime} /></label>
        </section>
        <section className="stack">
          <h2>{words.shared}</h2><Json value={shared} label={words.shared} />
          {signals && <><h2>{words.signals}</h2><Json value={state.signals} label={words.signals} /></>}
          {state.result !== undefined && state.result !== null && <><h2>{words.result}</h2><Json value={state.result} label={words.result} /></>}
        </section>
      </div>
    </>
  );
}

/** The states of the nodes, with the time of the step as the end of those that went on: clocks stand still there. */
function untilThen(state: RunState): RunState["node_states"] {
  return Object.fromEntries(Object.entries(state.node_states).map(([path, info]) => [path, info.started_at && !info.finished_at ? { ...info, finished_at: state.time } : info]));
}

/** Changes by JSON path: added, changed, removed. */
export function Changes({ changes }: { changes: DefinitionChange[] }) {
  const words = useWords(runWords).state;
  const common = useWords(commonWords).empty;
  if (changes.length === 0) return <p className="faint">{words.none || common.nothing}</p>;
  return (
    <ul className="changes">
      {changes.map((change) => (
        <li key={change.path}>
          <div className="row"><code className="cut">{pathText(change.path)}</code><span className="small faint">{words[change.kind] ?? change.kind}</span></div>
          <pre className="code fold" tabIndex={0}>
            {change.kind !== "added" && <del>- {brief(change.before)}</del>}
            {change.kind !== "removed" && <ins>+ {brief(change.after)}</ins>}
          </pre>
        </li>
      ))}
    </ul>
  );
}

function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? "null";
  return text.length > 2000 ? `${text.slice(0, 2000)}…` : text;
}
