import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { call } from "../../api/client";
import type { RunView } from "../../api/console";
import type { WaitReason } from "../../api/openapi";
import { useTicking } from "../../format/now";
import { money, shortId, tail } from "../../format/number";
import { nameInText } from "../../graph/names";
import { CopyButton } from "../../parts/Copy";
import { ErrorPanel } from "../../parts/Errors";
import { Icon } from "../../parts/Icon";
import { Marked } from "../../parts/Marked";
import { StatusPill } from "../../parts/Status";
import { isEnded, lookOf } from "../../parts/status";
import { Clock, Elapsed } from "../../parts/Time";
import { toast } from "../../parts/Toasts";
import { useWords } from "../../words/language";
import { runWords } from "../../words/run";
import type { ActionName } from "./dialogs";
import { familyOfReason, short, whyText } from "./why";

interface HeadProps {
  view: RunView;
  onAction: (action: ActionName) => void;
}

/** Pause, resume and step: actions without a dialog. */
function useDirect(view: RunView) {
  const words = useWords(runWords).dialog.done;
  const client = useQueryClient();
  return useMutation({
    mutationFn: (name: "pause" | "resume" | "step") => call(`POST /api/v1/runs/{id}/${name}` as "POST /api/v1/runs/{id}/pause", { path: { id: view.run.id }, body: {} }),
    onSuccess: (_, name) => {
      toast(words[name]);
      void client.invalidateQueries({ queryKey: ["run"] });
    },
  });
}

export function RunHead({ view, onAction }: HeadProps) {
  const words = useWords(runWords);
  const { run } = view;
  const direct = useDirect(view);
  const ended = isEnded(run.status);
  const hasFailed = Object.values(view.node_states).some((node) => node.status === "failed" || node.status === "canceled");
  return (
    <div className="runhead">
      <div className="head">
        <h1 className="text">{run.flow.slice(0, 200)} <span className="ver">@{run.version}</span></h1>
        <span role="status"><StatusPill status={run.status} /></span>
        <span className="dim"><Elapsed from={run.created_at} to={ended ? (run.ended_at ?? run.updated_at) : undefined} /></span>
        <span className="grow" />
        <span className="row wide">
          {!ended && <button type="button" className="btn" onClick={() => onAction({ name: "cancel" })}>{words.actions.cancel}</button>}
          {!ended && <button type="button" className="btn" onClick={() => onAction({ name: "signal" })}>{words.actions.signal}</button>}
          {!ended && run.status !== "paused" && <button type="button" className="btn" disabled={direct.isPending} onClick={() => direct.mutate("pause")}>{words.actions.pause}</button>}
          {run.status === "paused" && <button type="button" className="btn" disabled={direct.isPending} onClick={() => direct.mutate("resume")}>{words.actions.resume}</button>}
          {!ended && view.manual && <button type="button" className="btn" disabled={direct.isPending} onClick={() => direct.mutate("step")}><Icon name="step" small />{words.actions.step}</button>}
          {!ended && view.budget != null && <button type="button" className="btn" onClick={() => onAction({ name: "budget" })}>{words.actions.budget}</button>}
          <StartLike view={view} />
          {ended && hasFailed && <button type="button" className="btn" onClick={() => onAction({ name: "retry" })}>{words.actions.retry}</button>}
          {ended && <button type="button" className="btn primary" onClick={() => onAction({ name: "rerun" })}><Icon name="retry" small />{words.actions.rerun}</button>}
        </span>
      </div>
      <Facts view={view} />
      {direct.isError && <ErrorPanel error={direct.error} onRetry={() => direct.reset()} />}
      <WhyLine view={view} onAction={onAction} />
    </div>
  );
}

function StartLike({ view }: { view: RunView }) {
  const words = useWords(runWords);
  return <Link className="btn" to="/start" search={{ flow: view.run.flow, like: view.run.id } as never}>{words.actions.startLike}</Link>;
}

function Facts({ view }: { view: RunView }) {
  const words = useWords(runWords);
  const { run } = view;
  const trigger = run.parent ? "parent" : run.schedule_id ? "schedule" : "api";
  const fact = (name: string, value: ReactNode, wide = false) => <span className={wide ? "wide" : undefined}><b>{name}</b> {value}</span>;
  return (
    <div className="meta">
      <span className="mono">{shortId(run.id) === run.id ? run.id : `${run.id.slice(0, 12)}…${run.id.slice(-4)}`} <CopyButton text={run.id} /></span>
      {run.account && fact(words.meta.account, <Link className="link cut" to="/accounts/$account" params={{ account: run.account }}>{run.account.slice(0, 60)}</Link>)}
      {(run.cost.estimated > 0 || run.cost.actual > 0) && fact(words.meta.cost, isEnded(run.status) ? money(run.cost.actual) : `${words.estimated(money(run.cost.estimated))}, ${words.held}`)}
      {fact(words.meta.trigger, words.trigger[trigger])}
      {run.parent && fact(words.meta.parent, <Link className="link mono" to="/runs/$run" params={{ run: run.parent.run }} search={{ node: run.parent.node } as never}>{tail(run.parent.run)}</Link>)}
      {run.schedule_id && fact(words.meta.schedule, <Link className="link mono" to="/schedules/$schedule" params={{ schedule: run.schedule_id }}>{tail(run.schedule_id)}</Link>)}
      {fact(words.meta.started, <Clock at={run.created_at} />)}
      {fact(words.meta.priority, view.priority, true)}
      {run.round > 1 && fact(words.meta.round, run.round)}
      {view.budget != null && fact(words.meta.budget, money(view.budget), true)}
      {run.request_id && fact(words.meta.request, <span className="mono">{run.request_id.slice(0, 60)}</span>, true)}
      {Object.entries(run.labels ?? {}).slice(0, 6).map(([key, value]) => <span key={key} className="tag wide">{`${key}=${value}`.slice(0, 60)}</span>)}
    </div>
  );
}

/** One sentence that says why the run stands where it stands, and the buttons that move it on. */
function WhyLine({ view, onAction }: HeadProps) {
  const words = useWords(runWords);
  const { run, why } = view;
  const [first, second, ...rest] = why.filter((reason) => reason.waits_for !== "nothing");
  const main = useTicking((now) => (first ? whyText(first, now, words.why, view.graph) : ""));
  const also = useTicking((now) => (second ? words.why.also(whyText(second, now, words.why, view.graph)) : ""));
  if (isEnded(run.status)) return <EndLine view={view} />;
  if (!first) return null;
  const family = familyOfReason(first);
  const actionable = [first, second, ...rest].filter((reason): reason is WaitReason => reason !== undefined).slice(0, 4);
  return (
    <div className={`note why ${family}`} data-why={first.waits_for}>
      <Icon name={family === "wait" ? "waiting" : family === "retry" ? "retry" : family === "fail" ? "warn" : family === "run" ? "running" : "pending"} />
      <span className="grow"><Marked text={main} />{also && <span className="dim"> <Marked text={also} /></span>}{rest.length > 0 && <span className="dim"> {words.why.more(rest.length)}</span>}</span>
      {actionable.map((reason) => <ReasonButtons key={`${reason.waits_for} ${reason.node}`} reason={reason} onAction={onAction} />)}
    </div>
  );
}

function ReasonButtons({ reason, onAction }: { reason: WaitReason; onAction: (action: ActionName) => void }) {
  const words = useWords(runWords).actions;
  const { node, waits_for, key } = reason;
  switch (waits_for) {
    case "approval": return (
      <>
        <button type="button" className="btn sm" onClick={() => onAction({ name: "decide", node, decision: "rejected" })}>{words.reject}</button>
        <button type="button" className="btn sm primary" onClick={() => onAction({ name: "decide", node, decision: "approved" })}>{words.approve}</button>
      </>
    );
    case "signal": return <button type="button" className="btn sm" onClick={() => onAction({ name: "signal", key: key ?? undefined })}>{words.sendSignal}</button>;
    case "report": return <button type="button" className="btn sm" onClick={() => onAction({ name: "continue", node })}>{words.continueNode}</button>;
    case "worker": return <Link className="btn sm" to="/workers">{words.openWorkers}</Link>;
    case "queue": case "limit": return <Link className="btn sm" to="/queues">{words.openQueue}</Link>;
    case "budget": return <button type="button" className="btn sm" onClick={() => onAction({ name: "budget" })}>{words.budget}</button>;
    default: return null;
  }
}

function EndLine({ view }: { view: RunView }) {
  const words = useWords(runWords).why;
  const { run } = view;
  const { family, icon } = lookOf(run.status);
  const error = short(run.error?.message, 300) ?? "";
  const text = run.status === "failed" ? (run.error?.node ? words.failedAt(nameInText(view.graph, run.error.node).slice(0, 80), error) : words.failed(error)) : words[run.status as "completed" | "canceled"];
  return <div className={`note why ${family === "idle" ? "idle" : family}`} data-why={run.status}><Icon name={icon} /><span className="grow"><Marked text={text} /></span></div>;
}

/** The actions at phone width. */
export function Dock({ view, onAction }: HeadProps) {
  const words = useWords(runWords).actions;
  const ended = isEnded(view.run.status);
  return (
    <div className="dock narrow">
      {!ended && <button type="button" className="btn" onClick={() => onAction({ name: "cancel" })}>{words.cancel}</button>}
      {!ended && <button type="button" className="btn" onClick={() => onAction({ name: "signal" })}>{words.signal}</button>}
      {ended && <StartLike view={view} />}
      {ended && <button type="button" className="btn primary" onClick={() => onAction({ name: "rerun" })}>{words.rerun}</button>}
    </div>
  );
}

