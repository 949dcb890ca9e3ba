import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../api/client";
import type { QueueInfo } from "../../api/openapi";
import { cli, curl } from "../../format/shell";
import { count } from "../../format/number";
import { ActionDialog } from "../../parts/ActionDialog";
import { readJson } from "../../parts/json-input";
import { JsonField } from "../../parts/JsonField";
import { toast } from "../../parts/Toasts";
import { queuesWords } from "../../words/queues";
import { useWords } from "../../words/language";
import { depths, formOf, limitFlags, type LimitForm, limitsOf } from "./queue";

interface QueueDialogProps { queue: QueueInfo; onClose: () => void }

function useReread() {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: ["queues"] });
}

/** Pauses an open queue, resumes a paused one. */
export function PauseDialog({ queue, onClose }: QueueDialogProps) {
  const words = useWords(queuesWords);
  const reread = useReread();
  const { ready, running } = depths(queue);
  const verb = queue.paused ? "resume" : "pause";
  const path = { name: queue.name };
  return (
    <ActionDialog
      title={queue.paused ? words.resumeTitle(queue.name) : words.pauseTitle(queue.name)} confirm={queue.paused ? words.resume : words.pause}
      cli={cli("queue", verb, queue.name)} curl={curl("POST", `/api/v1/queues/${encodeURIComponent(queue.name)}/${verb}`)}
      run={() => call(queue.paused ? "POST /api/v1/queues/{name}/resume" : "POST /api/v1/queues/{name}/pause", { path })}
      onDone={(done) => { toast((done.paused ? words.paused : words.resumed)(queue.name), done.paused ? "wait" : "ok", done.paused ? "paused" : "check"); void reread(); }}
      onClose={onClose}
    >
      <p>{queue.paused ? words.resumeText(ready) : words.pauseText(ready, running)}</p>
    </ActionDialog>
  );
}

export function LimitsDialog({ queue, onClose }: QueueDialogProps) {
  const words = useWords(queuesWords);
  const reread = useReread();
  const [form, setForm] = useState<LimitForm>(() => formOf(queue.limits));
  const field = (key: Exclude<keyof LimitForm, "fair">, label: string) => (
    <label className="field"><span>{label}</span>
      <input className="input" inputMode="numeric" value={form[key]} onChange={(event) => setForm({ ...form, [key]: event.target.value })} />
    </label>
  );
  const unit = (key: "perMs" | "keyPerMs") => (
    <label className="field"><span>{words.per}</span>
      <select className="input" value={form[key]} onChange={(event) => setForm({ ...form, [key]: event.target.value })}>
        {Object.entries(words.units).map(([ms, label]) => <option key={ms} value={ms}>{label}</option>)}
        {!(form[key] in words.units) && <option value={form[key]}>{form[key]} ms</option>}
      </select>
    </label>
  );
  return (
    <ActionDialog
      title={words.limitsOf(queue.name)} subtitle={words.limitsText} confirm={words.edit}
      cli={cli("queue", "limit", queue.name, ...limitFlags(form))} curl={curl("PATCH", `/api/v1/queues/${encodeURIComponent(queue.name)}`, { limits: limitsOf(form) })}
      run={() => call("PATCH /api/v1/queues/{name}", { path: { name: queue.name }, body: { limits: limitsOf(form) } })}
      onDone={() => { toast(words.saved(queue.name)); void reread(); }} onClose={onClose}
    >
      {field("concurrency", words.concurrency)}
      <div className="cols three">{field("count", words.rate)}{unit("perMs")}{field("burst", words.burst)}</div>
      {field("keyConcurrency", words.keyConcurrency)}
      <div className="cols three">{field("keyCount", words.keyRate)}{unit("keyPerMs")}{field("keyBurst", words.keyBurst)}</div>
      <label className="check"><input type="checkbox" checked={form.fair} onChange={(event) => setForm({ ...form, fair: event.target.checked })} />{words.fairField}</label>
    </ActionDialog>
  );
}

/** Creates a job; without a queue the dialog asks for one. */
export function EnqueueDialog({ queue, onClose }: { queue?: string; onClose: () => void }) {
  const words = useWords(queuesWords);
  const reread = useReread();
  const [form, setForm] = useState({ queue: queue ?? "", name: "", payload: "{}", priority: "0", retries: "", dedup: "" });
  const change = (part: Partial<typeof form>) => setForm({ ...form, ...part });
  const { value, error } = readJson(form.payload);
  const job = {
    name: form.name, queue: form.queue, payload: value, priority: Number(form.priority) || 0,
    ...(form.retries !== "" && { retry: { max: Number(form.retries) } }), ...(form.dedup !== "" && { dedup_key: form.dedup }),
  };
  return (
    <ActionDialog
      title={queue ? words.pushTitle(queue) : words.push} confirm={words.push} disabled={!form.name || !form.queue || error !== undefined}
      cli={cli("queue", "push", form.queue, form.name, "--payload", form.payload, form.priority !== "0" && "--priority", form.priority !== "0" && form.priority, form.retries && "--retries", form.retries, form.dedup && "--dedup-key", form.dedup)}
      curl={curl("POST", "/api/v1/jobs", job)}
      run={() => call("POST /api/v1/jobs", { body: job })}
      onDone={(made) => { toast(words.created("id" in made ? made.id : count(1))); void reread(); }} onClose={onClose}
    >
      {queue === undefined && <label className="field"><span>{words.queueField}</span><input className="input" autoFocus value={form.queue} onChange={(event) => change({ queue: event.target.value })} /></label>}
      <label className="field"><span>{words.name}</span><input className="input" autoFocus={queue !== undefined} value={form.name} onChange={(event) => change({ name: event.target.value })} /></label>
      <JsonField label={words.payload} value={form.payload} onChange={(payload) => change({ payload })} />
      <div className="cols three">
        <label className="field"><span>{words.priority}</span><input className="input" inputMode="numeric" value={form.priority} onChange={(event) => change({ priority: event.target.value })} /><small>{words.priorityHint}</small></label>
        <label className="field"><span>{words.retries}</span><input className="input" inputMode="numeric" value={form.retries} onChange={(event) => change({ retries: event.target.value })} /></label>
        <label className="field"><span>{words.dedup}</span><input className="input" value={form.dedup} onChange={(event) => change({ dedup: event.target.value })} /></label>
      </div>
    </ActionDialog>
  );
}
