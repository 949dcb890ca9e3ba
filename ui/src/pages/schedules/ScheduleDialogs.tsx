import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { call } from "../../api/client";
import type { ScheduleInfo } from "../../api/openapi";
import { cli, curl } from "../../format/shell";
import { ActionDialog } from "../../parts/ActionDialog";
import { readJson } from "../../parts/json-input";
import { JsonField } from "../../parts/JsonField";
import { Segments } from "../../parts/Tabs";
import { toast } from "../../parts/Toasts";
import { useWords } from "../../words/language";
import { schedulesWords } from "../../words/schedules";
import { bodyOf, formOf, type ScheduleForm } from "./cron";
import { PreviewTimes } from "./NextTimes";

interface ScheduleDialogProps { schedule: ScheduleInfo; onClose: () => void }

function useReread() {
  const client = useQueryClient();
  return () => void client.invalidateQueries({ queryKey: ["schedules"] });
}

export function TriggerDialog({ schedule, onClose }: ScheduleDialogProps) {
  const words = useWords(schedulesWords);
  const reread = useReread();
  return (
    <ActionDialog
      title={words.triggerTitle(schedule.name)} confirm={words.trigger} cli={cli("schedule", "trigger", schedule.name)} curl={curl("POST", `/api/v1/schedules/${schedule.id}/trigger`)}
      run={() => call("POST /api/v1/schedules/{id}/trigger", { path: { id: schedule.id } })} onDone={() => { toast(words.triggered); reread(); }} onClose={onClose}
    ><p>{words.triggerText}</p></ActionDialog>
  );
}

export function ToggleDialog({ schedule, onClose }: ScheduleDialogProps) {
  const words = useWords(schedulesWords);
  const reread = useReread();
  const isOn = schedule.enabled;
  return (
    <ActionDialog
      title={(isOn ? words.disableTitle : words.enableTitle)(schedule.name)} confirm={isOn ? words.disable : words.enable}
      cli={cli("schedule", isOn ? "disable" : "enable", schedule.name)} curl={curl("POST", `/api/v1/schedules/${schedule.id}/toggle`, { enabled: !isOn })}
      run={() => call("POST /api/v1/schedules/{id}/toggle", { path: { id: schedule.id }, body: { enabled: !isOn } })}
      onDone={() => { toast((isOn ? words.disabled : words.enabled)(schedule.name), isOn ? "wait" : "ok", isOn ? "paused" : "check"); reread(); }} onClose={onClose}
    ><p>{isOn ? words.disableText : words.enableText}</p></ActionDialog>
  );
}

export function DeleteDialog({ schedule, onClose }: ScheduleDialogProps) {
  const words = useWords(schedulesWords);
  const navigate = useNavigate();
  const reread = useReread();
  return (
    <ActionDialog
      title={words.deleteTitle(schedule.name)} confirm={words.delete} danger cli={cli("schedule", "delete", schedule.name)} curl={curl("DELETE", `/api/v1/schedules/${schedule.id}`)}
      run={() => call("DELETE /api/v1/schedules/{id}", { path: { id: schedule.id } })}
      onDone={() => { toast(words.deleted(schedule.name)); void navigate({ to: "/schedules" }); reread(); }} onClose={onClose}
    ><p>{words.deleteText}</p></ActionDialog>
  );
}

/** Creates a schedule, or changes one; the next ten times follow what is typed. */
export function ScheduleFormDialog({ schedule, flow, onClose }: { schedule?: ScheduleInfo; flow?: string; onClose: () => void }) {
  const words = useWords(schedulesWords);
  const { form: label } = words;
  const reread = useReread();
  const navigate = useNavigate();
  const [form, setForm] = useState<ScheduleForm>(() => ({ ...formOf(schedule, Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC"), ...(flow && { flow }) }));
  const change = (part: Partial<ScheduleForm>) => setForm((old) => ({ ...old, ...part }));
  const jsonOk = (form.kind === "flow" ? readJson(form.params, "object") : readJson(form.payload)).error === undefined;
  const isWhole = form.cron.trim() !== "" && (form.kind === "flow" ? form.flow !== "" : form.job !== "" && form.queue !== "");
  const body = jsonOk && isWhole ? bodyOf(form, schedule) : undefined;
  const flags = form.kind === "flow" ? ["--flow", form.flow] : ["--job", form.job, "--queue", form.queue, ...(form.payload.trim() ? ["--payload", form.payload] : [])];
  const field = (key: keyof ScheduleForm, text: string, hint?: string, more: object = {}) => (
    <label className="field"><span>{text}</span><input className="input" value={form[key]} autoComplete="off" spellCheck={false} onChange={(event) => change({ [key]: event.target.value })} {...more} />{hint && <small>{hint}</small>}</label>
  );
  const choice = (key: keyof ScheduleForm, text: string, choices: Record<string, string>) => (
    <label className="field"><span>{text}</span><select className="input" value={form[key]} onChange={(event) => change({ [key]: event.target.value })}>{Object.entries(choices).map(([id, word]) => <option key={id} value={id}>{word}</option>)}</select></label>
  );
  return (
    <ActionDialog
      title={schedule ? label.editTitle(schedule.name) : label.createTitle} wide confirm={schedule ? label.save : label.submit} disabled={!body}
      cli={cli("schedule", schedule ? "edit" : "create", schedule?.name, "--cron", form.cron, "--tz", form.zone, ...(schedule ? [] : flags), "--overlap", form.overlap, "--catchup", form.catchup, !schedule && form.name && "--name", !schedule && form.name)}
      curl={curl(schedule ? "PATCH" : "POST", schedule ? `/api/v1/schedules/${schedule.id}` : "/api/v1/schedules", body)}
      run={() => (schedule ? call("PATCH /api/v1/schedules/{id}", { path: { id: schedule.id }, body: body as never }) : call("POST /api/v1/schedules", { body: body! }))}
      onDone={(made) => { toast((schedule ? label.saved : label.created)(made.name)); reread(); if (!schedule) void navigate({ to: "/schedules/$schedule", params: { schedule: made.id } }); }}
      onClose={onClose}
    >
      <div className="cols">{field("name", label.name, undefined, { autoFocus: !schedule })}
        <div className="field"><span className="label">{label.target}</span><div><Segments label={label.target} value={form.kind} onChange={(kind) => change({ kind })} items={[{ id: "flow", label: label.flow }, { id: "job", label: label.job }]} /></div></div>
      </div>
      {form.kind === "flow"
        ? <><div className="cols"><FlowField value={form.flow} onChange={(name) => change({ flow: name })} />{field("version", label.version, label.versionHint, { inputMode: "numeric" })}</div><JsonField label={label.params} value={form.params} onChange={(params) => change({ params })} wants="object" rows={3} /></>
        : <><div className="cols">{field("job", label.jobName)}{field("queue", label.queue)}</div><JsonField label={label.payload} value={form.payload} onChange={(payload) => change({ payload })} rows={3} /></>}
      <div className="cols">{field("cron", label.cron, label.cronHint, { className: "input mono", placeholder: "0 9 * * 1-5" })}{field("zone", label.zone, undefined, { list: "zones" })}</div>
      <datalist id="zones">{zones().map((zone) => <option key={zone} value={zone} />)}</datalist>
      <PreviewTimes cron={form.cron} zone={form.zone} dst={form.dst} />
      <div className="cols three">{choice("overlap", label.overlap, label.overlaps)}{choice("catchup", label.catchup, label.catchups)}{choice("dst", label.dst, label.dsts)}</div>
      <div className="cols">{field("account", label.account)}<label className="field"><span>{label.window}</span><span className="input"><input inputMode="decimal" value={form.windowHours} onChange={(event) => change({ windowHours: event.target.value })} /><span className="faint">{label.hours}</span></span></label></div>
    </ActionDialog>
  );
}

function zones(): string[] {
  return ["UTC", ...(typeof Intl.supportedValuesOf === "function" ? Intl.supportedValuesOf("timeZone") : [])];
}

/** A field for the name of a flow, with the names that there are. */
function FlowField({ value, onChange }: { value: string; onChange: (name: string) => void }) {
  const words = useWords(schedulesWords).form;
  const flows = useQuery({ queryKey: ["flows", "names"], queryFn: ({ signal }) => call("GET /api/v1/flows", { query: { limit: 200 }, signal }), staleTime: 60_000 });
  return (
    <label className="field"><span>{words.flowName}</span>
      <input className="input" list="flow-names" value={value} autoComplete="off" onChange={(event) => onChange(event.target.value)} />
      <datalist id="flow-names">{(flows.data?.items ?? []).map(({ name }) => <option key={name} value={name} />)}</datalist>
    </label>
  );
}
