import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { request } from "../../api/client";
import type { BulkDryRun, BulkRequest } from "../../api/console";
import { count, counted } from "../../format/number";
import { cli, curl } from "../../format/shell";
import { useKeys } from "../../keys/keys";
import { ActionDialog } from "../../parts/ActionDialog";
import { ErrorPanel } from "../../parts/Errors";
import { JsonField } from "../../parts/JsonField";
import { readJson } from "../../parts/json-input";
import { StatusWord } from "../../parts/Status";
import { commonWords } from "../../words/common";
import { useWords } from "../../words/language";
import { runsWords } from "../../words/runs";

type BulkAction = "cancel" | "retry" | "rerun" | "pause" | "resume" | "signal";

interface BulkBarProps {
  query: string;
  selected: ReadonlySet<string>;
  /** All runs that match the query, not only the selected ones. */
  isAll: boolean;
  total: { count: number; more?: boolean } | undefined;
  isWholePage: boolean;
  onAll: () => void;
  onClear: () => void;
}

const ACTIONS: BulkAction[] = ["retry", "rerun", "signal", "pause", "resume", "cancel"];

/** The toolbar of the selection. */
export function BulkBar({ query, selected, isAll, total, isWholePage, onAll, onClear }: BulkBarProps) {
  const words = useWords(runsWords);
  const common = useWords(commonWords).action;
  const [action, setAction] = useState<BulkAction>();
  useKeys([{ keys: "Escape", label: (of) => commonWords[of].action.clear, run: onClear }], (of) => runsWords[of].keys.title);
  const all = total && counted(total);
  return (
    <div className="bulk" role="toolbar" aria-label={words.selected(selected.size)}>
      <span className="strong nowrap" role="status">{isAll && all ? words.allMatching(all) : words.selected(selected.size)}</span>
      {!isAll && isWholePage && total && total.count > selected.size && <button type="button" className="link nowrap" style={{ margin: "0 4px 0 8px" }} onClick={onAll}>{words.selectMatching(all ?? "")}</button>}
      <span className="sep" />
      {ACTIONS.map((name) => <button type="button" key={name} className={`btn sm quiet${name === "cancel" ? " danger" : ""}`} onClick={() => setAction(name)}>{words.actions[name]}</button>)}
      <span className="sep" />
      <button type="button" className="btn sm quiet" onClick={onClear}>{common.clear} <kbd>Esc</kbd></button>
      {action && <BulkDialog action={action} target={isAll ? { query } : { ids: [...selected] }} known={isAll ? total : { count: selected.size }} onClose={() => setAction(undefined)} onDone={onClear} />}
    </div>
  );
}

function useArgs(action: BulkAction) {
  const [from, setFrom] = useState("");
  const [key, setKey] = useState("");
  const [value, setValue] = useState("{}");
  const json = readJson(value, "any");
  if (action === "rerun") return { args: { from }, isReady: from !== "", from, setFrom };
  if (action === "signal") return { args: { key, value: json.value }, isReady: key !== "" && !json.error, key, setKey, value, setValue };
  return { args: {}, isReady: true };
}

interface BulkDialogProps {
  action: BulkAction;
  target: { query: string } | { ids: string[] };
  known: { count: number; more?: boolean } | undefined;
  onClose: () => void;
  onDone: () => void;
}

/** One action on many runs: the dry run is shown before the button. */
function BulkDialog({ action, target, known, onClose, onDone }: BulkDialogProps) {
  const words = useWords(runsWords);
  const navigate = useNavigate();
  const args = useArgs(action);
  const body: BulkRequest = { kind: "runs", ...target, action, args: args.args };
  const dry = useQuery({
    queryKey: ["bulk-dry", body], enabled: args.isReady, retry: false, staleTime: 0,
    queryFn: ({ signal }) => request<BulkDryRun>("POST", "/api/v1/bulk", { body: { ...body, dry_run: true }, signal }),
  });
  const name = words.dialog.names[action] ?? action;
  const matched = dry.data ? counted({ count: dry.data.matched, more: dry.data.more }) : known ? counted(known) : "";
  const command = (reason: string) => cli(
    "bulk", action, ...("query" in target ? (target.query ? ["-q", target.query] : ["--query="]) : target.ids), ...(args.from ? ["--from", args.from] : []),
    ...(args.key ? ["--key", args.key, "--value", args.value ?? ""] : []), ...(reason ? ["--reason", reason] : []), "--yes",
  );
  return (
    <ActionDialog
      title={words.dialog.title(name, matched)} subtitle={"query" in target ? <code className="text">{target.query || "*"}</code> : words.dialog.ids(target.ids.length)}
      confirm={words.dialog.title(name, matched)} danger={action === "cancel"} withReason disabled={!args.isReady || !dry.data || dry.data.matched === 0} onClose={onClose}
      cli={command} curl={(reason) => curl("POST", "/api/v1/bulk", { ...body, reason: reason || undefined })}
      run={(reason) => request<{ id: string }>("POST", "/api/v1/bulk", { body: { ...body, reason } })}
      onDone={({ id }) => { onDone(); void navigate({ to: "/bulk/$bulk", params: { bulk: id } as never }); }}
    >
      {args.setFrom && <label className="field"><span>{words.dialog.from}</span><input className="input mono" autoFocus value={args.from} onChange={(event) => args.setFrom?.(event.target.value)} /></label>}
      {args.setKey && <label className="field"><span>{words.dialog.key}</span><input className="input mono" autoFocus value={args.key} onChange={(event) => args.setKey?.(event.target.value)} /></label>}
      {args.setValue && <JsonField label={words.dialog.value} value={args.value ?? ""} onChange={args.setValue} wants="any" rows={4} />}
      {dry.isError ? <ErrorPanel error={dry.error} onRetry={() => void dry.refetch()} /> : dry.data ? <DryRunResult dry={dry.data} /> : args.isReady && <p className="small faint">{words.dialog.checking}</p>}
    </ActionDialog>
  );
}

function DryRunResult({ dry }: { dry: BulkDryRun }) {
  const words = useWords(runsWords).dialog;
  const { apply = 0, refuse = 0 } = dry.outcomes;
  return (
    <div className={`note ${apply > 0 ? "ok" : "retry"}`} data-dry-run={apply}>
      <div className="stack" style={{ gap: 4 }}>
        <span>{refuse > 0 ? words.dryRun(count(apply), count(refuse)) : words.dryAll(count(apply))}</span>
        <span className="row wrap small">{Object.entries(dry.by_status).map(([status, n]) => <span key={status} className="row" style={{ gap: 4 }}><StatusWord status={status} /> {count(n)}</span>)}</span>
      </div>
    </div>
  );
}
