// The dialogs of the actions on a run.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { actor, call } from "../../api/client";
import type { RunView } from "../../api/console";
import type { DryRun } from "../../api/openapi";
import { count, money, tail } from "../../format/number";
import { cli } from "../../format/shell";
import { ActionDialog } from "../../parts/ActionDialog";
import { ErrorPanel } from "../../parts/Errors";
import { JsonField } from "../../parts/JsonField";
import { toast } from "../../parts/Toasts";
import { useWords } from "../../words/language";
import { runWords } from "../../words/run";

export type ActionName =
  | { name: "cancel" } | { name: "retry" } | { name: "budget" }
  | { name: "rerun"; node?: string }
  | { name: "signal"; key?: string }
  | { name: "decide"; node: string; decision: "approved" | "rejected" }
  | { name: "continue"; node: string };

interface DialogProps {
  view: RunView;
  onClose: () => void;
}

export function RunDialogs({ view, action, onClose }: DialogProps & { action: ActionName }) {
  switch (action.name) {
    case "cancel": return <CancelDialog view={view} onClose={onClose} />;
    case "retry": return <RetryDialog view={view} onClose={onClose} />;
    case "budget": return <BudgetDialog view={view} onClose={onClose} />;
    case "rerun": return <RerunDialog view={view} node={action.node} onClose={onClose} />;
    case "signal": return <SignalDialog view={view} signal={action.key} onClose={onClose} />;
    case "decide": return <DecideDialog view={view} node={action.node} decision={action.decision} onClose={onClose} />;
    case "continue": return <ContinueDialog view={view} node={action.node} onClose={onClose} />;
  }
}

/** Tells the result and reads the run again: the stream may be late or paused. */
function useDone(key: keyof (typeof runWords)["en"]["dialog"]["done"]) {
  const words = useWords(runWords).dialog.done;
  const client = useQueryClient();
  return () => {
    toast(words[key]);
    void client.invalidateQueries({ queryKey: ["run"] });
  };
}

function parsed(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

const ACTIVE = new Set(["running", "waiting", "retrying", "suspended", "queued", "parked"]);

function CancelDialog({ view, onClose }: DialogProps) {
  const words = useWords(runWords).dialog;
  const { id } = view.run;
  const active = Object.values(view.node_states).filter((node) => ACTIVE.has(node.status)).length;
  return (
    <ActionDialog
      title={words.cancelTitle(tail(id))} subtitle={view.run.flow.slice(0, 80)} confirm={words.cancelRun} keep={words.keep} danger withReason onClose={onClose} onDone={useDone("cancel")}
      cli={(reason) => cli("run", "cancel", id, ...(reason ? ["--reason", reason] : []))}
      run={(reason) => call("POST /api/v1/runs/{id}/cancel", { path: { id }, body: { reason, by: actor() } })}
    >
      <p className="dim">{words.cancelText(active)}</p>
    </ActionDialog>
  );
}

function SignalDialog({ view, signal, onClose }: DialogProps & { signal?: string }) {
  const words = useWords(runWords).dialog;
  const { id } = view.run;
  const waiting = view.why.flatMap((reason) => (reason.waits_for === "signal" && reason.key ? [reason.key] : []));
  const [key, setKey] = useState(signal ?? waiting[0] ?? "");
  const [text, setText] = useState("{}");
  const value = parsed(text);
  return (
    <ActionDialog
      title={words.signalTitle} confirm={words.signalSend} disabled={!key || !value} onClose={onClose} onDone={useDone("signal")}
      cli={cli("run", "signal", id, key, text)}
      run={() => call("POST /api/v1/runs/{id}/signal", { path: { id }, body: { key, value: value?.value, by: actor() } })}
    >
      <label className="field"><span>{words.signalKey}</span>
        <input className="input mono" value={key} onChange={(event) => setKey(event.target.value)} list="signal-keys" autoComplete="off" />
        <datalist id="signal-keys">{waiting.map((one) => <option key={one} value={one} />)}</datalist>
      </label>
      <JsonField label={words.signalValue} value={text} onChange={setText} />
    </ActionDialog>
  );
}

function DecideDialog({ view, node, decision, onClose }: DialogProps & { node: string; decision: "approved" | "rejected" }) {
  const words = useWords(runWords).dialog;
  const { id } = view.run;
  const reason = view.why.find((one) => one.waits_for === "approval" && one.node === node);
  const [comment, setComment] = useState("");
  const [by, setBy] = useState(actor() ?? reason?.assignees?.[0] ?? "");
  const isApproval = decision === "approved";
  const command = isApproval ? "approve" : "reject";
  return (
    <ActionDialog
      title={isApproval ? words.approveTitle(node) : words.rejectTitle(node)} subtitle={view.run.flow.slice(0, 80)} danger={!isApproval} onClose={onClose} onDone={useDone("decide")}
      confirm={isApproval ? words.approveTitle(node.split("/").at(-1) ?? node) : words.rejectTitle(node.split("/").at(-1) ?? node)}
      cli={cli("approvals", command, `${id}/${node}`, ...(comment ? ["-m", comment] : []), ...(by ? ["--by", by] : []))}
      run={() => call("POST /api/v1/runs/{id}/decide", { path: { id }, body: { decision, node, comment: comment || undefined, by: by || undefined } })}
    >
      <label className="field"><span>{words.comment}</span><textarea className="input" autoFocus value={comment} onChange={(event) => setComment(event.target.value)} /></label>
      <label className="field"><span>{words.by}</span>
        <input className="input" value={by} onChange={(event) => setBy(event.target.value)} list="assignees" autoComplete="off" />
        <datalist id="assignees">{reason?.assignees?.map((one) => <option key={one} value={one} />)}</datalist>
      </label>
    </ActionDialog>
  );
}

/** The outcome of a rerun or retry before it is made. */
function DryRunNote({ dry, error, onRetry }: { dry: DryRun | undefined; error: unknown; onRetry: () => void }) {
  const words = useWords(runWords).dialog;
  if (error) return <ErrorPanel error={error} onRetry={onRetry} />;
  if (!dry) return <p className="small faint">{words.checking}</p>;
  const of = (status: string) => dry.nodes.filter((node) => node.status === status).length;
  const parts = [words.dryRun(of("runs") + of("goes_on"), dry.calls.sure), of("may_run") > 0 && words.mayRun(of("may_run")), of("kept") > 0 && words.kept(of("kept")), dry.cost.at_most > 0 && words.dryCost(money(dry.cost.estimated))];
  return <div className="note ok" data-dry-run={of("runs")}><span className="text">{parts.filter(Boolean).join(" ")}</span></div>;
}

/** The nodes that a run may go on from: those that it has entered. */
function entered(view: RunView): string[] {
  const places = new Map((view.graph?.nodes ?? []).map((node, n) => [node.id, n]));
  const place = (path: string) => places.get(path) ?? places.size;
  const paths = Object.entries(view.node_states).filter(([path, node]) => node.round != null && !path.includes("/")).map(([path]) => path);
  return paths.sort((a, b) => place(a) - place(b));
}

function RerunDialog({ view, node, onClose }: DialogProps & { node?: string }) {
  const words = useWords(runWords).dialog;
  const { id } = view.run;
  const nodes = entered(view);
  const outer = node?.split("/")[0];
  const [from, setFrom] = useState(outer && nodes.includes(outer) ? outer : (view.run.error?.node?.split("/")[0] ?? nodes[0] ?? ""));
  const [isEditing, setEditing] = useState(false);
  const [text, setText] = useState<string>();
  const whole = useQuery({ queryKey: ["run-shared", id], enabled: isEditing, queryFn: ({ signal }) => call("GET /api/v1/runs/{id}", { path: { id }, signal }) });
  const before = whole.data ? JSON.stringify(whole.data.shared, null, 2) : "";
  const edited = parsed(text ?? before) as { value: Record<string, unknown> } | undefined;
  const shared = isEditing && edited && whole.data ? changedKeys(whole.data.shared, edited.value) : undefined;
  const body = { from, ...(shared && Object.keys(shared).length > 0 && { shared }) };
  const dry = useQuery({
    queryKey: ["rerun-dry", id, body], enabled: from !== "", retry: false,
    queryFn: ({ signal }) => call("POST /api/v1/runs/{id}/rerun", { path: { id }, query: { dry_run: true }, body, signal }) as Promise<DryRun>,
  });
  return (
    <ActionDialog
      wide={isEditing} title={words.rerunTitle(from)} subtitle={`${view.run.flow.slice(0, 80)} ${tail(id)}`} confirm={words.rerun} disabled={!from || (isEditing && !edited) || dry.isError} onClose={onClose} onDone={useDone("rerun")}
      cli={cli("run", "rerun", id, "--from", from, ...(body.shared ? ["--shared", JSON.stringify(body.shared)] : []))}
      run={() => call("POST /api/v1/runs/{id}/rerun", { path: { id }, body })}
    >
      <p className="dim">{words.rerunText}</p>
      <label className="field"><span>{words.from}</span>
        <select className="input" value={from} onChange={(event) => setFrom(event.target.value)}>{nodes.map((one) => <option key={one}>{one}</option>)}</select>
      </label>
      <label className="check"><input type="checkbox" checked={isEditing} onChange={(event) => setEditing(event.target.checked)} />{words.editShared}</label>
      {isEditing && (whole.isError ? <ErrorPanel error={whole.error} onRetry={() => void whole.refetch()} /> : <JsonField label={words.shared} value={text ?? before} onChange={setText} hint={words.sharedHint} />)}
      <DryRunNote dry={dry.data} error={dry.error} onRetry={() => void dry.refetch()} />
    </ActionDialog>
  );
}

/** The keys of the shared state that were edited. */
export function changedKeys(before: Record<string, unknown>, after: unknown): Record<string, unknown> {
  if (after === null || typeof after !== "object" || Array.isArray(after)) return {};
  const fields = Object.entries(after).filter(([key, value]) => JSON.stringify(before[key]) !== JSON.stringify(value));
  return Object.fromEntries(fields);
}

function RetryDialog({ view, onClose }: DialogProps) {
  const words = useWords(runWords).dialog;
  const { id } = view.run;
  const dry = useQuery({ queryKey: ["retry-dry", id], retry: false, queryFn: ({ signal }) => call("POST /api/v1/runs/{id}/retry", { path: { id }, query: { dry_run: true } as never, body: {}, signal }) as Promise<DryRun> });
  return (
    <ActionDialog
      title={words.retryTitle} subtitle={`${view.run.flow.slice(0, 80)} ${tail(id)}`} confirm={words.retry} disabled={dry.isError} onClose={onClose} onDone={useDone("retry")}
      cli={`windlass run retry ${id}`} run={() => call("POST /api/v1/runs/{id}/retry", { path: { id }, body: {} })}
    >
      <p className="dim">{words.retryText}</p>
      <DryRunNote dry={dry.data} error={dry.error} onRetry={() => void dry.refetch()} />
    </ActionDialog>
  );
}

function BudgetDialog({ view, onClose }: DialogProps) {
  const words = useWords(runWords).dialog;
  const { id } = view.run;
  const [text, setText] = useState(String(view.budget ?? ""));
  const budget = /^\d+$/.test(text) ? Number(text) : undefined;
  return (
    <ActionDialog
      title={words.budgetTitle} confirm={budget === undefined ? words.budgetSet : `${words.budgetSet}: ${count(budget)}`} disabled={budget === undefined} onClose={onClose} onDone={useDone("budget")}
      cli={`windlass run budget ${id} ${text}`} run={() => call("POST /api/v1/runs/{id}/budget", { path: { id }, body: { budget: budget ?? 0 } })}
    >
      <label className="field"><span>{words.budget}</span><input className="input" inputMode="numeric" value={text} onChange={(event) => setText(event.target.value)} aria-invalid={budget === undefined} /></label>
    </ActionDialog>
  );
}

function ContinueDialog({ view, node, onClose }: DialogProps & { node: string }) {
  const words = useWords(runWords).dialog;
  const { id } = view.run;
  const [text, setText] = useState("null");
  const value = parsed(text);
  return (
    <ActionDialog
      title={words.continueTitle(node)} confirm={words.continueRun} disabled={!value} onClose={onClose} onDone={useDone("continue")}
      cli={cli("run", "continue", id, node, text)}
      run={() => call("POST /api/v1/runs/{id}/continue", { path: { id }, body: { node, result: value?.value } })}
    >
      <p className="dim">{words.continueText}</p>
      <JsonField label={words.result} value={text} onChange={setText} />
    </ActionDialog>
  );
}
