import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { AttemptView, FlowGraph, RunView } from "../../api/console";
import type { NodeInfo, WaitReason } from "../../api/openapi";
import { nameOf } from "../../graph/names";
import { nodeOf, pathsOf } from "../../graph/overlay";
import { useTicking } from "../../format/now";
import { tail } from "../../format/number";
import { CopyButton } from "../../parts/Copy";
import { EmptyList } from "../../parts/Empty";
import { Icon } from "../../parts/Icon";
import { Marked } from "../../parts/Marked";
import { Menu } from "../../parts/Menu";
import { PayloadView } from "../../parts/Payload";
import { useStatusWord, StatusPill, StatusWord } from "../../parts/Status";
import { isEnded, lookOf } from "../../parts/status";
import { Clock, Elapsed } from "../../parts/Time";
import { attemptKey } from "../../live/patch";
import { commonWords } from "../../words/common";
import { useWords } from "../../words/language";
import { runWords } from "../../words/run";
import type { ActionName } from "./dialogs";
import { NodeLogs } from "./NodeLogs";
import { familyOfReason, whyText } from "./why";

interface NodePanelProps {
  view: RunView;
  graph: FlowGraph | undefined;
  selection: string | undefined;
  onSelect: (path: string | undefined) => void;
  onAction: (action: ActionName) => void;
}

const BRANCHES_SHOWN = 200;

/** The selected node: its attempts, or its branches where the drawing has one node for many. */
export function NodePanel(props: NodePanelProps) {
  const { view, graph, selection } = props;
  const words = useWords(runWords).node;
  if (!selection) return <EmptyList icon="flows" title={words.none} text={words.noneText} />;
  if (view.node_states[selection]) return <NodeDetail key={selection} {...props} path={selection} />;
  const paths = graph ? pathsOf(graph, selection, view.node_states) : [];
  if (paths.length > 0) return <Branches {...props} paths={paths} title={selection} />;
  const label = (graph && nodeOf(graph, selection)?.label) ?? selection;
  return (
    <div className="panel">
      <div className="row"><h2 className="grow text">{label.slice(0, 200)}</h2><StatusPill status="pending" /></div>
      <p className="dim">{words.notStarted}</p>
    </div>
  );
}

function Branches({ view, paths, title, onSelect }: NodePanelProps & { paths: string[]; title: string }) {
  const words = useWords(runWords).node;
  const counts = new Map<string, number>();
  for (const path of paths) {
    const status = view.node_states[path]?.status ?? "pending";
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  return (
    <div className="panel">
      <h2 className="text">{title}</h2>
      <p className="dim">{words.branchCount(paths.length)}</p>
      <div className="row wrap">{[...counts].map(([status, n]) => <span key={status} className="row" style={{ gap: 4 }}><StatusPill status={status} /><span className="small dim">{n}</span></span>)}</div>
      <ul className="branches">
        {paths.slice(0, BRANCHES_SHOWN).map((path) => (
          <li key={path}><button type="button" onClick={() => onSelect(path)}><span className="mono cut">{path}</span><StatusWord status={view.node_states[path]?.status ?? "pending"} /></button></li>
        ))}
      </ul>
      {paths.length > BRANCHES_SHOWN && <p className="small faint">{words.moreBranches(paths.length - BRANCHES_SHOWN)}</p>}
    </div>
  );
}

function NodeDetail({ view, graph, path, onSelect, onAction }: NodePanelProps & { path: string }) {
  const words = useWords(runWords);
  const info = view.node_states[path] as NodeInfo;
  const node = graph && nodeOf(graph, path);
  const attempts = view.attempts.filter((attempt) => attempt.node === path).reverse();
  const reasons = view.why.filter((reason) => reason.node === path);
  const isBranch = node?.id.includes("*");
  return (
    <div className="panel" data-panel={path}>
      <div className="row">
        <h2 className="grow text">{info.title?.slice(0, 200) ?? nameOf(graph, path)}</h2><StatusPill status={info.status} />
      </div>
      <p className="small dim text">
        {isBranch && node && <><button type="button" className="link" onClick={() => onSelect(node.id)}>{words.node.back}</button> · </>}
        {[info.kind?.slice(0, 60), attempts[0]?.service && attempts[0].service !== info.kind && `${words.node.service} ${attempts[0].service.slice(0, 60)}`].filter(Boolean).join(" · ")}
        {path.includes("/") && <> · <code>{path.slice(0, 120)}</code></>}
      </p>
      {(isEnded(view.run.status) ? info.round != null : reasons.length > 0 || info.child || info.job) && (
        <div className="row wrap">
          {isEnded(view.run.status) && <button type="button" className="btn sm primary" onClick={() => onAction({ name: "rerun", node: path })}><Icon name="retry" small />{words.actions.rerunFrom}</button>}
          {reasons.map((reason) => <WaitButtons key={reason.waits_for} reason={reason} onAction={onAction} />)}
          <span className="grow" />
          <NodeMenu view={view} info={info} path={path} onAction={onAction} />
        </div>
      )}
      {reasons.map((reason) => <Reason key={reason.waits_for} reason={reason} graph={graph} />)}
      {attempts.length > 0 ? <Attempts view={view} attempts={attempts} /> : (
        <>
          {info.error && <Fault kind={info.error.kind} message={info.error.message} />}
          <p className="dim">{info.status === "skipped" ? words.node.skipped : info.status === "pending" ? words.node.notStarted : ""}</p>
        </>
      )}
      <NodeLogs run={view.run.id} node={path} seq={view.seq} />
    </div>
  );
}

function Reason({ reason, graph }: { reason: WaitReason; graph: FlowGraph | undefined }) {
  const words = useWords(runWords).why;
  const text = useTicking((now) => whyText(reason, now, words, graph));
  if (reason.waits_for === "answer") return null;
  return <div className={`note ${familyOfReason(reason)}`}><Marked text={text} /></div>;
}

function WaitButtons({ reason, onAction }: { reason: WaitReason; onAction: (action: ActionName) => void }) {
  const words = useWords(runWords).actions;
  const { node } = reason;
  if (reason.waits_for === "approval") {
    return (
      <>
        <button type="button" className="btn sm" onClick={() => onAction({ name: "decide", node, decision: "approved" })}><Icon name="check" small />{words.approve}</button>
        <button type="button" className="btn sm danger" onClick={() => onAction({ name: "decide", node, decision: "rejected" })}><Icon name="x" small />{words.reject}</button>
      </>
    );
  }
  return reason.waits_for === "signal" ? <button type="button" className="btn sm" onClick={() => onAction({ name: "signal", key: reason.key ?? undefined })}>{words.sendSignal}</button> : null;
}

function NodeMenu({ view, info, path, onAction }: { view: RunView; info: NodeInfo; path: string; onAction: (action: ActionName) => void }) {
  const words = useWords(runWords).actions;
  const canEnd = info.status === "suspended" || info.status === "waiting";
  if (!canEnd && !info.child && !info.job) return null;
  return (
    <Menu className="btn sm">
      {(close) => (
        <>
          {canEnd && <button type="button" onClick={() => { close(); onAction({ name: "continue", node: path }); }}>{words.continueNode}</button>}
          {info.child && <Link to="/runs/$run" params={{ run: info.child }}>{words.openChild} <small className="mono">{tail(info.child)}</small></Link>}
          {info.job && <Link to="/jobs/$job" params={{ job: info.job }}>{words.openJob} <small className="mono">{tail(info.job)}</small></Link>}
          <Link to="/runs" search={{ query: `flow:${view.run.flow} node:${path}` } as never}>{path.slice(0, 40)}</Link>
        </>
      )}
    </Menu>
  );
}

/** Attempts as tabs, the newest first. */
function Attempts({ view, attempts }: { view: RunView; attempts: AttemptView[] }) {
  const words = useWords(runWords).node;
  const word = useStatusWord();
  const calls = attempts.filter((attempt) => attempt.kind !== "retry");
  const [chosen, setChosen] = useState<string>();
  const current = calls.find((attempt) => attemptKey(attempt) === chosen) ?? calls[0] ?? attempts[0];
  if (!current) return null;
  return (
    <>
      {calls.length > 1 && (
        <div className="tries" role="group" aria-label={words.attempts}>
          {calls.slice(0, 8).map((attempt, n) => {
            const { family, icon } = lookOf(attempt.status);
            return (
              <button type="button" key={attemptKey(attempt)} aria-pressed={attempt === current} onClick={() => setChosen(attemptKey(attempt))}>
                {calls.length - n}<small className={family}><span className="fg row" style={{ gap: 3 }}><Icon name={icon} />{word(attempt.status)}</span></small>
              </button>
            );
          })}
        </div>
      )}
      <Attempt key={attemptKey(current)} view={view} attempt={current} />
    </>
  );
}

function Attempt({ view, attempt }: { view: RunView; attempt: AttemptView }) {
  const words = useWords(runWords).node;
  const whole = (of: string) => (attempt.fence == null ? undefined : `/api/v1/runs/${view.run.id}/output?of=${of}&fence=${attempt.fence}`);
  const waits = attempt.status === "waiting" || attempt.status === "parked";
  // Visits are numbered over the whole run: the number says something only where a node was entered more than once.
  const isOneOfMany = view.attempts.some((other) => other.node === attempt.node && other.visit !== attempt.visit);
  return (
    <>
      {attempt.error && <Fault kind={attempt.error.kind} message={attempt.error.message} />}
      <dl className="facts">
        {attempt.worker && <><dt>{words.worker}</dt><dd><Link className="link" to="/workers" search={{ worker: attempt.worker } as never}>{attempt.worker.slice(0, 80)}</Link></dd></>}
        {attempt.queued_at !== attempt.started_at && <><dt>{words.queued}</dt><dd><Elapsed from={attempt.queued_at} to={attempt.started_at} /></dd></>}
        {attempt.started_at && <><dt>{waits ? words.waited : words.ran}</dt><dd><Elapsed from={attempt.started_at} to={attempt.finished_at} /></dd></>}
        {attempt.started_at && <><dt>{words.started}</dt><dd><Clock at={attempt.started_at} /></dd></>}
        {attempt.action && attempt.action !== "default" && <><dt>{words.action}</dt><dd><code>{attempt.action.slice(0, 120)}</code></dd></>}
        {isOneOfMany && <><dt>{words.visit}</dt><dd>{attempt.visit}</dd></>}
      </dl>
      {attempt.input && <PayloadView title={words.input} payload={attempt.input} whole={whole("input")} />}
      <PayloadView title={words.output} payload={attempt.output} whole={whole("output")} />
    </>
  );
}

const FOLDED = 400;

function Fault({ kind, message }: { kind: string; message: string }) {
  const common = useWords(commonWords).action;
  const [isOpen, setOpen] = useState(false);
  const status = /\bHTTP (\d{3})\b/.exec(message)?.[0];
  const isLong = message.length > FOLDED;
  return (
    <div className="errbox">
      <div className="row"><Icon name="x" small /><span className="cut">{kind}</span><span className="grow" />{status && <span>{status}</span>}<CopyButton text={message} label={common.copy} /></div>
      <p className="fault">{isOpen ? message.slice(0, 20_000) : message.slice(0, FOLDED)}{isLong && !isOpen && "…"}</p>
      {isLong && <button type="button" className="link small" onClick={() => setOpen(!isOpen)}>{isOpen ? common.close : common.loadMore}</button>}
    </div>
  );
}
