import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { call } from "../../api/client";
import type { ScheduleInfo } from "../../api/openapi";
import { PageFrame } from "../../app/PageFrame";
import { useSearchState } from "../../app/search-state";
import { useRefetch } from "../../live/use-refetch";
import { EmptyList, EmptyMatch } from "../../parts/Empty";
import { Icon } from "../../parts/Icon";
import { ListFoot, useList } from "../../parts/List";
import { Panel } from "../../parts/Panel";
import { useRowCursor } from "../../parts/rows";
import { StatusWord } from "../../parts/Status";
import { Ago } from "../../parts/Time";
import { useWords } from "../../words/language";
import { schedulesWords } from "../../words/schedules";
import { cronText } from "./cron";
import { ScheduleFormDialog, ToggleDialog, TriggerDialog } from "./ScheduleDialogs";

export function useSchedules(key: string, keep: (schedule: ScheduleInfo) => boolean = () => true) {
  return useList<ScheduleInfo>(["schedules", key], async (cursor, signal) => {
    const { schedules, next } = await call("GET /api/v1/schedules", { query: { cursor }, signal });
    return { items: schedules.filter(keep), next };
  });
}

export function SchedulesPage() {
  const words = useWords(schedulesWords);
  const list = useSchedules("list");
  useRefetch("schedules", ["schedules"]);
  const [needle, setNeedle] = useSearchState("q");
  const [dialog, setDialog] = useSearchState("new");
  const wanted = needle.toLowerCase();
  const shown = (list.data ?? []).filter((schedule) => [schedule.name, schedule.flow ?? "", schedule.task?.name ?? ""].some((text) => text.toLowerCase().includes(wanted)));
  return (
    <PageFrame title={words.title} actions={<button type="button" className="btn primary" onClick={() => setDialog("1")}><Icon name="plus" small />{words.create}</button>}>
      <Panel query={list}>
        {(schedules) => schedules.length === 0
          ? <EmptyList icon="schedules" title={words.none} text={words.noneText} command="windlass schedule create --cron '30 7 * * 1-5' --tz Europe/Berlin --flow reports/daily" />
          : (
            <>
              <div className="head"><label className="input" style={{ maxWidth: 320 }}><Icon name="search" small /><input data-search aria-label={words.filter} placeholder={words.filter} value={needle} onChange={(event) => setNeedle(event.target.value || undefined)} /></label></div>
              {shown.length === 0 ? <EmptyMatch filter={needle} onClear={() => setNeedle(undefined)} /> : <ScheduleTable schedules={shown} />}
              <ListFoot list={list} shown={shown.length} />
            </>
          )}
      </Panel>
      {dialog && <ScheduleFormDialog onClose={() => setDialog(undefined)} />}
    </PageFrame>
  );
}

/** The target of a schedule: a flow or a job. */
export function Target({ schedule }: { schedule: ScheduleInfo }) {
  const words = useWords(schedulesWords);
  if (schedule.flow) return <><Link to="/flows/$flow" params={{ flow: schedule.flow }}>{schedule.flow}</Link> <span className="ver">@{schedule.version ?? words.latest}</span></>;
  return <>{words.job} {schedule.task?.name} <span className="ver">{words.in} {schedule.task?.queue_name}</span></>;
}

export function ScheduleTable({ schedules }: { schedules: ScheduleInfo[] }) {
  const words = useWords(schedulesWords);
  const head = words.head;
  const navigate = useNavigate();
  const [dialog, setDialog] = useState<{ of: "trigger" | "toggle"; schedule: ScheduleInfo }>();
  const open = (n: number) => { const schedule = schedules[n]; if (schedule) void navigate({ to: "/schedules/$schedule", params: { schedule: schedule.id } }); };
  const [at, setAt] = useRowCursor({ count: schedules.length, open });
  const close = () => setDialog(undefined);
  return (
    <div className="frame"><div className="scroll">
      <table>
        <thead><tr><th>{head.name}</th><th>{head.state}</th><th>{head.when}</th><th>{head.starts}</th><th>{head.next}</th><th>{head.last}</th><th>{head.overlap}</th><th><span className="hidden-text">{words.trigger}</span></th></tr></thead>
        <tbody>
          {schedules.map((schedule, n) => (
            <tr key={schedule.id} data-row={n} data-schedule={schedule.name} className={`link-row${n === at ? " cursor" : ""}`} onClick={(event) => { if (!(event.target as Element).closest("a, button, dialog")) { setAt(n); open(n); } }}>
              <td className="cut"><Link to="/schedules/$schedule" params={{ schedule: schedule.id }}>{schedule.name}</Link></td>
              <td><StatusWord status={schedule.enabled ? "enabled" : "disabled"} />{schedule.last_error && <span className="err" title={schedule.last_error.reason}> <Icon name="warn" small /></span>}</td>
              <td className="cut" title={schedule.cron_expr}>{cronText(schedule.cron_expr, words.cron) ?? <code>{schedule.cron_expr}</code>} <span className="faint">{schedule.timezone}</span></td>
              <td className="cut"><Target schedule={schedule} /></td>
              <td className="dim">{schedule.next_runs[0] ? <Ago at={schedule.next_runs[0]} /> : "–"}</td>
              <td className="dim">{schedule.last_run ? <StartedLink of={schedule.last_run}><Ago at={schedule.last_run.slot} /></StartedLink> : words.never}</td>
              <td className="dim">{words.form.overlaps[schedule.overlap] ?? schedule.overlap}</td>
              <td className="num"><button type="button" className="btn sm" onClick={() => setDialog({ of: "trigger", schedule })}>{words.trigger}</button> <button type="button" className="btn sm quiet" onClick={() => setDialog({ of: "toggle", schedule })}>{schedule.enabled ? words.disable : words.enable}</button></td>
            </tr>
          ))}
        </tbody>
      </table>
      {dialog?.of === "trigger" && <TriggerDialog schedule={dialog.schedule} onClose={close} />}
      {dialog?.of === "toggle" && <ToggleDialog schedule={dialog.schedule} onClose={close} />}
    </div></div>
  );
}

/** A link to the job or the run that a schedule started. */
export function StartedLink({ of, children }: { of: object; children: React.ReactNode }) {
  if ("run_id" in of) return <Link className="link" to="/runs/$run" params={{ run: String(of.run_id) }}>{children}</Link>;
  if ("task_id" in of) return <Link className="link" to="/jobs/$job" params={{ job: String(of.task_id) }}>{children}</Link>;
  return <>{children}</>;
}
