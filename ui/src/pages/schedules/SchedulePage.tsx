import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { call } from "../../api/client";
import type { JobSummary, RunSummary, ScheduleInfo } from "../../api/openapi";
import { request } from "../../api/client";
import { PageFrame } from "../../app/PageFrame";
import { shortId } from "../../format/number";
import { duration } from "../../format/time";
import { useRefetch } from "../../live/use-refetch";
import { Icon } from "../../parts/Icon";
import { Json } from "../../parts/Json";
import { Menu } from "../../parts/Menu";
import { Panel } from "../../parts/Panel";
import { StatusPill, StatusWord } from "../../parts/Status";
import { Ago, Elapsed } from "../../parts/Time";
import { useWords } from "../../words/language";
import { schedulesWords } from "../../words/schedules";
import { cronText } from "./cron";
import { NextTimes } from "./NextTimes";
import { DeleteDialog, ScheduleFormDialog, ToggleDialog, TriggerDialog } from "./ScheduleDialogs";
import { StartedLink, Target } from "./SchedulesPage";

const STARTED_SHOWN = 20;

export function SchedulePage() {
  const { schedule: id } = useParams({ strict: false }) as { schedule: string };
  const words = useWords(schedulesWords);
  const schedule = useQuery({ queryKey: ["schedules", id], queryFn: ({ signal }) => call("GET /api/v1/schedules/{id}", { path: { id }, signal }) });
  useRefetch("schedules", ["schedules"]);
  return (
    <PageFrame title={schedule.data?.name ?? words.title} parent={{ to: "/schedules", label: words.title }} actions={schedule.data && <Buttons schedule={schedule.data} />}>
      <Panel query={schedule}>{(one) => <Body schedule={one} />}</Panel>
    </PageFrame>
  );
}

function Buttons({ schedule }: { schedule: ScheduleInfo }) {
  const words = useWords(schedulesWords);
  const [dialog, setDialog] = useState<"trigger" | "toggle" | "edit" | "delete">();
  const close = () => setDialog(undefined);
  return (
    <>
      <button type="button" className="btn wide" onClick={() => setDialog("edit")}><Icon name="edit" small />{words.edit}</button>
      <button type="button" className="btn" onClick={() => setDialog("toggle")}>{schedule.enabled ? words.disable : words.enable}</button>
      <button type="button" className="btn primary" onClick={() => setDialog("trigger")}>{words.trigger}</button>
      <Menu className="btn">{(shut) => <button type="button" className="err" onClick={() => { shut(); setDialog("delete"); }}>{words.delete}</button>}</Menu>
      {dialog === "trigger" && <TriggerDialog schedule={schedule} onClose={close} />}
      {dialog === "toggle" && <ToggleDialog schedule={schedule} onClose={close} />}
      {dialog === "delete" && <DeleteDialog schedule={schedule} onClose={close} />}
      {dialog === "edit" && <ScheduleFormDialog schedule={schedule} onClose={close} />}
    </>
  );
}

function Body({ schedule }: { schedule: ScheduleInfo }) {
  const words = useWords(schedulesWords);
  const { detail, form } = words;
  const given = schedule.flow ? schedule.params : schedule.task?.payload;
  return (
    <>
      <div className="head"><h1 className="text">{schedule.name}</h1><StatusPill status={schedule.enabled ? "enabled" : "disabled"} /><span className="dim">{cronText(schedule.cron_expr, words.cron)}</span></div>
      {schedule.last_error && <div className="note fail"><Icon name="warn" /><span className="text">{detail.lastError} <Ago at={schedule.last_error.at} />: {schedule.last_error.reason}</span></div>}
      <dl className="facts two">
        <dt>{words.head.starts}</dt><dd><Target schedule={schedule} /></dd>
        <dt>{form.cron}</dt><dd><code>{schedule.cron_expr}</code> {schedule.timezone}</dd>
        <dt>{form.overlap}</dt><dd>{form.overlaps[schedule.overlap] ?? schedule.overlap}</dd>
        <dt>{form.catchup}</dt><dd>{form.catchups[schedule.catchup] ?? schedule.catchup}{schedule.catchup !== "none" && `, ${form.windowText(duration(schedule.window_ms))}`}</dd>
        <dt>{form.dst}</dt><dd>{form.dsts[schedule.dst] ?? schedule.dst}</dd>
        <dt>{detail.fired}</dt><dd>{detail.firedText(schedule.fired ?? 0, schedule.passed ?? 0)}</dd>
        {schedule.last_run && <><dt>{detail.lastRun}</dt><dd><StartedLink of={schedule.last_run}><Ago at={schedule.last_run.slot} /></StartedLink> {schedule.last_run.manual && <span className="tag">{detail.byHand}</span>}</dd></>}
        {schedule.running.length > 0 && <><dt>{detail.running}</dt><dd className="row wrap">{schedule.running.map((of, n) => <StartedLink key={n} of={of}><span className="mono">{shortId("run_id" in of ? of.run_id : of.task_id)}</span></StartedLink>)}</dd></>}
        {schedule.account && <><dt>{form.account}</dt><dd><Link className="link" to="/accounts/$account" params={{ account: schedule.account }}>{schedule.account}</Link></dd></>}
      </dl>
      <div className="cols">
        <section className="stack"><h2>{words.next.title}</h2><NextTimes id={schedule.id} version={`${schedule.updated_at} ${schedule.fired}`} isOff={!schedule.enabled} /></section>
        <section className="stack"><h2>{schedule.flow ? detail.runs : detail.jobs}</h2>{schedule.flow ? <StartedRuns id={schedule.id} /> : <StartedJobs id={schedule.id} />}</section>
      </div>
      {given !== undefined && given !== null && <section className="stack"><h2>{schedule.flow ? form.params : form.payload}</h2><Json value={given} /></section>}
    </>
  );
}

/** The id of a schedule as runs carry it: the queue platform writes it as a UUID. */
function runsSchedule(id: string): string {
  return id.startsWith("sched_") ? id : `sched_${id.replace(/-/g, "")}`;
}

function StartedRuns({ id }: { id: string }) {
  const runs = useQuery({
    queryKey: ["schedules", id, "runs"],
    queryFn: ({ signal }) => request<{ items: RunSummary[] }>("GET", "/api/v1/runs", { query: { query: `schedule:${runsSchedule(id)}`, limit: STARTED_SHOWN }, signal }),
  });
  useRefetch("runs", ["schedules", id, "runs"]);
  return <Panel query={runs}>{({ items }) => <StartedTable rows={items.map((run) => ({ to: "run", id: run.id, name: run.flow, status: run.status, at: run.created_at, end: run.ended_at }))} />}</Panel>;
}

function StartedJobs({ id }: { id: string }) {
  const jobs = useQuery({ queryKey: ["schedules", id, "jobs"], queryFn: ({ signal }) => call("GET /api/v1/jobs", { query: { schedule: id, limit: STARTED_SHOWN }, signal }) });
  useRefetch("queues", ["schedules", id, "jobs"]);
  return <Panel query={jobs}>{({ items }) => <StartedTable rows={items.map((job: JobSummary) => ({ to: "job", id: job.id, name: job.name, status: job.status, at: job.created_at, end: ["completed", "failed", "canceled"].includes(job.status) ? job.updated_at : undefined }))} />}</Panel>;
}

function StartedTable({ rows }: { rows: { to: "run" | "job"; id: string; name: string; status: string; at: string; end?: string | null }[] }) {
  const words = useWords(schedulesWords);
  if (rows.length === 0) return <p className="dim">{words.detail.noneStarted}</p>;
  return (
    <div className="frame"><div className="scroll" tabIndex={0}><table><tbody>
      {rows.map((row) => (
        <tr key={row.id}><td><StatusWord status={row.status} /></td><td className="cut"><StartedLink of={row.to === "run" ? { run_id: row.id } : { task_id: row.id }}><span className="mono">{shortId(row.id)}</span></StartedLink></td><td className="dim"><Ago at={row.at} /></td><td className="num dim"><Elapsed from={row.at} to={row.end} /></td></tr>
      ))}
    </tbody></table></div></div>
  );
}
