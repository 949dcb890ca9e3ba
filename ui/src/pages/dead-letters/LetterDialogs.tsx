import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../api/client";
import type { DeadLetter, DeadLettersMoved } from "../../api/openapi";
import { count, tail } from "../../format/number";
import { cli, curl } from "../../format/shell";
import { duration } from "../../format/time";
import { ActionDialog } from "../../parts/ActionDialog";
import { Dialog } from "../../parts/Dialog";
import { Icon } from "../../parts/Icon";
import { readJson } from "../../parts/json-input";
import { JsonField } from "../../parts/JsonField";
import { Segments } from "../../parts/Tabs";
import { toast } from "../../parts/Toasts";
import { commonWords } from "../../words/common";
import { deadLettersWords } from "../../words/dead-letters";
import { useWords } from "../../words/language";
import { type LetterTarget, MOVED_MAX, patchBetween, patchPreview, selection, selectionFlags } from "./letters";

interface LetterDialogProps {
  /** What can be chosen; the first is chosen at first. */
  targets: { label: string; target: LetterTarget }[];
  /** A letter of the selection, for the preview. */
  sample?: DeadLetter;
  onClose: () => void;
}

function useTarget(targets: LetterDialogProps["targets"]) {
  const [at, setAt] = useState("0");
  const words = useWords(deadLettersWords);
  const target = targets[Number(at)]?.target ?? targets[0]!.target;
  const chooser = targets.length > 1 && (
    <div className="field"><span className="label">{words.which}</span>
      <div><Segments label={words.which} value={at} onChange={setAt} items={targets.map(({ label, target: one }, n) => ({ id: String(n), label: <>{label} <small>{count(one.count)}</small></> }))} /></div>
    </div>
  );
  return { target, chooser, subtitle: <>{words.inQueue(target.queue)}{target.message && <> · <span className="err text">{target.message}</span></>}</> };
}

/** Tells the outcome; refused letters are listed in a dialog of their own. */
function useOutcome(verb: "replayed" | "discarded") {
  const client = useQueryClient();
  const words = useWords(deadLettersWords);
  const [result, setResult] = useState<DeadLettersMoved>();
  const done = (moved: DeadLettersMoved) => {
    toast(words[verb](moved.moved));
    void client.invalidateQueries({ queryKey: ["dead-letters"] });
    void client.invalidateQueries({ queryKey: ["queues"] });
    if (moved.refused && moved.refused.length > 0) setResult(moved);
    return !(moved.refused && moved.refused.length > 0);
  };
  return { result, done };
}

export function ReplayDialog({ targets, sample, onClose }: LetterDialogProps) {
  const words = useWords(deadLettersWords);
  const { target, chooser, subtitle } = useTarget(targets);
  const isSingle = target.ids?.length === 1 && sample !== undefined;
  const [patchText, setPatch] = useState("");
  const [payloadText, setPayload] = useState(() => JSON.stringify(sample?.payload ?? null, null, 2));
  const [rate, setRate] = useState("");
  const [priority, setPriority] = useState("");
  const { result, done } = useOutcome("replayed");
  const typed = isSingle ? readJson(payloadText) : readJson(patchText);
  const difference = isSingle && typed.error === undefined ? patchBetween(sample.payload, typed.value) : typed.value;
  const patch = isSingle && JSON.stringify(difference) === "{}" ? undefined : difference;
  const body = { ...selection(target), ...(patch !== undefined && { patch }), ...(rate && { per_second: Number(rate) }), ...(priority && { override_priority: Number(priority) }) };
  const n = count(Math.min(target.count, MOVED_MAX));
  if (result) return <Refusals result={result} of={n} onClose={onClose} />;
  return (
    <ActionDialog
      title={words.replayOf(n)} subtitle={subtitle} confirm={words.confirmReplay(n)} disabled={typed.error !== undefined}
      cli={cli("dlq", "replay", target.queue, ...selectionFlags(target), ...(patch !== undefined ? ["--patch", JSON.stringify(patch)] : []), ...(rate ? ["--rate", rate] : []), ...(priority ? ["--priority", priority] : []))}
      curl={curl("POST", `/api/v1/queues/${encodeURIComponent(target.queue)}/dlq/replay`, body)}
      run={() => call("POST /api/v1/queues/{name}/dlq/replay", { path: { name: target.queue }, body })}
      onDone={(moved) => { if (done(moved)) onClose(); }} onClose={onClose}
    >
      {chooser}
      {isSingle
        ? <JsonField label={words.payload} value={payloadText} onChange={setPayload} hint={words.payloadHint} rows={8} />
        : <JsonField label={words.patch} value={patchText} onChange={setPatch} hint={words.patchHint} rows={4} />}
      {patch !== undefined && sample && <PatchPreview sample={sample} patch={patch} />}
      <div className="cols">
        <label className="field"><span>{words.rate}</span>
          <span className="input"><input inputMode="numeric" value={rate} placeholder={words.allAtOnce} onChange={(event) => setRate(event.target.value)} /><span className="faint">{words.perSecond}</span></span>
          {Number(rate) > 0 && <small>{words.lasts(duration((target.count / Number(rate)) * 1000))}</small>}
        </label>
        <label className="field"><span>{words.priority}</span><input className="input" inputMode="numeric" value={priority} placeholder={words.keep} onChange={(event) => setPriority(event.target.value)} /></label>
      </div>
      <p className="small dim">{words.replayText}{target.count > MOVED_MAX && ` ${words.most(count(MOVED_MAX))}`}</p>
    </ActionDialog>
  );
}

function PatchPreview({ sample, patch }: { sample: DeadLetter; patch: unknown }) {
  const words = useWords(deadLettersWords);
  const lines = patchPreview(sample.payload, patch).slice(0, 40);
  const of = (kind: string) => lines.filter((line) => line.kind === kind).length;
  return (
    <div className="stack" style={{ gap: 4 }}>
      <span className="small faint">{words.preview(tail(sample.task_id), of("added"), of("removed"))}</span>
      <pre className="code" tabIndex={0} role="region" aria-label={words.patch}>
        {lines.map(({ kind, text }, n) => (kind === "added" ? <ins key={n}>+ {text}</ins> : <del key={n}>- {text}</del>))}
      </pre>
    </div>
  );
}

export function DiscardDialog({ targets, onClose }: LetterDialogProps) {
  const words = useWords(deadLettersWords);
  const { target, chooser, subtitle } = useTarget(targets);
  const { result, done } = useOutcome("discarded");
  const [reason, setReason] = useState("");
  const n = count(Math.min(target.count, MOVED_MAX));
  const body = { ...selection(target), reason: reason.trim() };
  if (result) return <Refusals result={result} of={n} onClose={onClose} />;
  return (
    <ActionDialog
      title={words.discardOf(n)} subtitle={subtitle} confirm={words.confirmDiscard(n)} danger disabled={!reason.trim()}
      cli={cli("dlq", "discard", target.queue, ...selectionFlags(target), "--reason", reason.trim())} curl={curl("POST", `/api/v1/queues/${encodeURIComponent(target.queue)}/dlq/discard`, body)}
      run={() => call("POST /api/v1/queues/{name}/dlq/discard", { path: { name: target.queue }, body })}
      onDone={(moved) => { if (done(moved)) onClose(); }} onClose={onClose}
    >
      {chooser}
      <p>{words.discardText}{target.count > MOVED_MAX && ` ${words.most(count(MOVED_MAX))}`}</p>
      <label className="field"><span>{words.reason}</span><input className="input" autoFocus value={reason} maxLength={1000} onChange={(event) => setReason(event.target.value)} /><small>{words.reasonNeeded}</small></label>
    </ActionDialog>
  );
}

/** The letters that the server left where they were, each with the reason. */
function Refusals({ result, of, onClose }: { result: DeadLettersMoved; of: string; onClose: () => void }) {
  const words = useWords(deadLettersWords);
  const common = useWords(commonWords);
  const refused = result.refused ?? [];
  return (
    <Dialog title={words.result} onClose={onClose} footer={<><span className="grow" /><button type="button" className="btn" onClick={onClose}>{common.action.close}</button></>}>
      <div className="note retry"><Icon name="warn" /><span>{words.moved(result.moved, of)} {words.refused(refused.length)}</span></div>
      <ul className="stack" style={{ gap: 4 }}>{refused.slice(0, 100).map(({ task_id, reason }) => <li key={task_id}><code>{tail(task_id)}</code> <span className="text">{reason}</span></li>)}</ul>
    </Dialog>
  );
}
