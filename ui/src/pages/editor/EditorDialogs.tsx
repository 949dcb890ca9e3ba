import { useState } from "react";
import { ApiError, call } from "../../api/client";
import { cli, quoted } from "../../format/shell";
import { ActionDialog } from "../../parts/ActionDialog";
import { Icon } from "../../parts/Icon";
import { readJson } from "../../parts/json-input";
import { JsonField } from "../../parts/JsonField";
import { Marked } from "../../parts/Marked";
import { toast } from "../../parts/Toasts";
import { flowsWords } from "../../words/flows";
import { useWords } from "../../words/language";

interface PublishProps {
  flow?: string;
  text: string;
  base: number;
  latest: number;
  warnings: number;
  onDone: (name: string, version: number) => void;
  onClose: () => void;
}

/** Publishes the text as the next version, or as a new flow. */
export function PublishDialog({ flow, text, base, latest, warnings, onDone, onClose }: PublishProps) {
  const words = useWords(flowsWords).editor;
  const [name, setName] = useState(flow ?? "");
  const [note, setNote] = useState("");
  return (
    <ActionDialog
      title={words.publishTitle(flow ?? (name || words.newTitle))} confirm={words.publish} disabled={!name.trim()}
      cli={`${cli("flow", "apply", "flow.yaml", "--name", name)}${note ? ` --note ${quoted(note)}` : ""}`}
      run={() => (flow ? call("POST /api/v1/flows/{flow}/versions", { path: { flow }, body: { yaml: text, ...(note && { note }) } }) : call("POST /api/v1/flows", { body: { name: name.trim(), yaml: text } }))}
      onDone={({ name: made, version }) => { toast(words.published(made, version)); onDone(made, version); }} onClose={onClose}
    >
      {flow ? <p>{words.publishText(latest + 1)}</p> : <p>{words.publishFirst}</p>}
      {flow && base < latest && <div className="note retry"><Icon name="warn" /><span>{words.conflict(base, latest)}</span></div>}
      {warnings > 0 && <p className="small dim">{words.hasWarnings(warnings)}</p>}
      {flow
        ? <label className="field"><span>{words.note}</span><input className="input" autoFocus value={note} maxLength={1000} placeholder={words.noteHint} onChange={(event) => setNote(event.target.value)} /></label>
        : <label className="field"><span>{words.name}</span><input className="input" autoFocus value={name} placeholder="reports/daily" onChange={(event) => setName(event.target.value)} /></label>}
    </ActionDialog>
  );
}

/** The flow that holds test runs of a flow's drafts. */
const draftOf = (flow: string | undefined) => `drafts/${flow ?? "new"}`;

/** Publishes the draft beside the flow, and starts one run of it. */
async function startTest(flow: string | undefined, text: string, params: Record<string, unknown>): Promise<string> {
  const name = draftOf(flow);
  const body = { yaml: text };
  let version: number;
  try {
    ({ version } = await call("POST /api/v1/flows/{flow}/versions", { path: { flow: name }, body }));
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    ({ version } = await call("POST /api/v1/flows", { body: { ...body, name } }));
  }
  const { id } = await call("POST /api/v1/flows/{flow}/runs", { path: { flow: name }, body: { params, version, labels: { test: "draft" } } });
  return id;
}

export function TestDialog({ flow, text, onStarted, onClose }: { flow?: string; text: string; onStarted: (run: string) => void; onClose: () => void }) {
  const words = useWords(flowsWords).editor;
  const [params, setParams] = useState("{}");
  const { value, error } = readJson(params, "object");
  return (
    <ActionDialog
      title={words.testTitle} confirm={words.testRun} disabled={error !== undefined}
      cli={`${cli("flow", "apply", "flow.yaml", "--name", draftOf(flow))} && ${cli("run", "start", draftOf(flow))}`}
      run={() => startTest(flow, text, (value ?? {}) as Record<string, unknown>)} onDone={onStarted} onClose={onClose}
    >
      <p><Marked text={words.testText(draftOf(flow))} /></p>
      <JsonField label={words.params} value={params} onChange={setParams} wants="object" rows={5} autoFocus />
    </ActionDialog>
  );
}

export function DiscardDialog({ onDiscard, onClose }: { onDiscard: () => void; onClose: () => void }) {
  const words = useWords(flowsWords).editor;
  return <ActionDialog title={words.discardTitle} confirm={words.discard} danger run={async () => onDiscard()} onClose={onClose}><p>{words.discardText}</p></ActionDialog>;
}
