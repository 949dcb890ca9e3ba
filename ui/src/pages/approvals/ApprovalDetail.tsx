import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { call, request } from "../../api/client";
import type { FlowGraph } from "../../api/console";
import type { ApprovalInfo, AuditLine, RunDetail } from "../../api/openapi";
import { useTicking } from "../../format/now";
import { money, shortId, tail } from "../../format/number";
import { cli, curl } from "../../format/shell";
import { duration, ms } from "../../format/time";
import { FlowGraphView } from "../../graph/FlowGraphView";
import { overlayOf } from "../../graph/overlay";
import { useKeys } from "../../keys/keys";
import { ActionDialog } from "../../parts/ActionDialog";
import { CopyAs } from "../../parts/Copy";
import { Boundary, ErrorPanel } from "../../parts/Errors";
import { Icon } from "../../parts/Icon";
import { Json } from "../../parts/Json";
import { readJson } from "../../parts/json-input";
import { JsonField } from "../../parts/JsonField";
import { Marked } from "../../parts/Marked";
import { Panel } from "../../parts/Panel";
import { StatusPill } from "../../parts/Status";
import { Ago, Clock } from "../../parts/Time";
import { toast } from "../../parts/Toasts";
import { approvalsWords } from "../../words/approvals";
import { commonWords } from "../../words/common";
import { useWords } from "../../words/language";
import { decisionsOf, goesTo } from "./approvals";

interface ApprovalDetailProps { approval: ApprovalInfo; person: string | undefined; onBack: () => void }

function decide(approval: ApprovalInfo, person: string | undefined, decision: unknown, comment: string) {
  return call("POST /api/v1/runs/{id}/decide", { path: { id: approval.run }, body: { node: approval.node, decision, ...(comment.trim() && { comment: comment.trim() }), ...(person && { by: person }) } });
}

export function ApprovalDetail({ approval, person, onBack }: ApprovalDetailProps) {
  const words = useWords(approvalsWords);
  const common = useWords(commonWords);
  const client = useQueryClient();
  const [comment, setComment] = useState("");
  const [dialog, setDialog] = useState<"approved" | "rejected" | "other">();
  const run = useQuery({ queryKey: ["runs", approval.run, "detail"], queryFn: ({ signal }) => call("GET /api/v1/runs/{id}", { path: { id: approval.run }, signal }) });
  const graph = useQuery({ queryKey: ["runs", approval.run, "graph"], queryFn: ({ signal }) => request<FlowGraph>("GET", `/api/v1/runs/${approval.run}/graph`, { signal }), staleTime: Number.POSITIVE_INFINITY });
  const done = (decision: unknown) => {
    const [text, isGood] = decision === "approved" ? [words.approved, true] : decision === "rejected" ? [words.rejected, false] : [words.sent, true];
    toast(text(tail(approval.run)), isGood ? "ok" : "idle", isGood ? "check" : "x");
    onBack();
    void client.invalidateQueries({ queryKey: ["approvals"] });
  };
  const sent = useMutation({ mutationFn: (decision: unknown) => decide(approval, person, decision, comment), onSuccess: (_answer, decision) => done(decision) });
  useKeys([
    { keys: "a", label: (of) => approvalsWords[of].approve, run: () => setDialog("approved") },
    { keys: "x", label: (of) => approvalsWords[of].reject, run: () => setDialog("rejected") },
  ], (of) => approvalsWords[of].title);
  const subject = `${approval.run}/${approval.node}`;
  return (
    <section className="inbox-detail" aria-label={approval.title || approval.node}>
      <button type="button" className="btn sm quiet narrow" onClick={onBack}><Icon name="left" small />{common.action.back}</button>
      <div className="row"><h2 className="grow text title">{approval.title || approval.node}</h2><StatusPill status="waiting" /></div>
      <p className="small dim text"><Link className="link" to="/runs/$run" params={{ run: approval.run }} search={{ node: approval.node } as never}>{approval.flow}{run.data && ` @${run.data.version}`} {tail(approval.run)}</Link> · {words.node} <code>{approval.node}</code></p>
      {approval.until && <TimeoutNote until={approval.until} />}
      {[run, graph].map((query, n) => query.isError && <ErrorPanel key={n} error={query.error} onRetry={() => void query.refetch()} />)}
      {graph.data && <Boundary><Thumbnail graph={graph.data} run={run.data} name={approval.flow} /></Boundary>}
      <Facts approval={approval} run={run.data} person={person} />
      <h3>{words.context}</h3>
      {approval.input === null || approval.input === undefined ? <p className="dim">{words.noContext}</p> : <Json value={approval.input} label={words.context} />}
      {approval.form ? <><h3>{words.form}</h3><Json value={approval.form} label={words.form} /></> : null}
      <label className="field"><span>{words.comment}</span><textarea className="input" rows={2} maxLength={4000} value={comment} onChange={(event) => setComment(event.target.value)} /><small><Consequences approval={approval} graph={graph.data} /></small></label>
      {sent.isError && <ErrorPanel error={sent.error} onRetry={() => sent.mutate(sent.variables)} />}
      <div className="row wrap decide">
        <button type="button" className="btn primary" disabled={sent.isPending} onClick={() => sent.mutate("approved")}><Icon name="check" small />{words.approve} <kbd>a</kbd></button>
        <button type="button" className="btn danger" disabled={sent.isPending} onClick={() => sent.mutate("rejected")}><Icon name="x" small />{words.reject} <kbd>x</kbd></button>
        <button type="button" className="btn quiet" onClick={() => setDialog("other")}>{words.other}</button>
        <span className="grow" /><CopyAs text={cli("approvals", "approve", subject, comment.trim() && "-m", comment.trim(), person && "--by", person)}>{common.action.copyCli}</CopyAs>
      </div>
      {dialog === "other" && <OtherDialog approval={approval} person={person} comment={comment} onDone={done} onClose={() => setDialog(undefined)} />}
      {(dialog === "approved" || dialog === "rejected") && (
        <ActionDialog
          title={(dialog === "approved" ? words.approveTitle : words.rejectTitle)(approval.node)} subtitle={approval.title} confirm={dialog === "approved" ? words.approve : words.reject} danger={dialog === "rejected"}
          cli={cli("approvals", dialog === "approved" ? "approve" : "reject", subject, comment.trim() && "-m", comment.trim(), person && "--by", person)}
          run={() => decide(approval, person, dialog, comment)} onDone={() => done(dialog)} onClose={() => setDialog(undefined)}
        >
          <label className="field"><span>{words.comment}</span><input className="input" autoFocus value={comment} maxLength={4000} onChange={(event) => setComment(event.target.value)} /><small><Consequences approval={approval} graph={graph.data} /></small></label>
        </ActionDialog>
      )}
    </section>
  );
}

function TimeoutNote({ until }: { until: string }) {
  const words = useWords(approvalsWords);
  const end = ms(until) ?? 0;
  const text = useTicking((now) => words.timeoutNote(duration(Math.max(0, end - now))));
  return <div className="note retry"><Icon name="clock" /><span>{text}</span></div>;
}

function Thumbnail({ graph, run, name }: { graph: FlowGraph; run: RunDetail | undefined; name: string }) {
  return <div className="thumbnail"><FlowGraphView graph={graph} name={name} overlays={run && overlayOf(graph, run.node_states)} bare maxHeight="150px" /></div>;
}

function Facts({ approval, run, person }: { approval: ApprovalInfo; run: RunDetail | undefined; person: string | undefined }) {
  const words = useWords(approvalsWords);
  return (
    <dl className="facts two">
      <dt>{words.askedAt}</dt><dd><Clock at={approval.since} />, <Ago at={approval.since} /></dd>
      <dt>{words.may}</dt><dd>{approval.assignees.length === 0 ? words.everyone : approval.assignees.map((name) => (name === person ? `${name} (${words.you})` : name)).join(", ")}</dd>
      {run?.account && <><dt>{words.account}</dt><dd><Link className="link" to="/accounts/$account" params={{ account: run.account }}>{run.account}</Link></dd></>}
      {run?.account && <><dt>{words.costSoFar}</dt><dd>{money(run.cost.estimated)}</dd></>}
    </dl>
  );
}

/** Where both decisions lead, as far as the graph tells. */
function Consequences({ approval, graph }: { approval: ApprovalInfo; graph: FlowGraph | undefined }) {
  const words = useWords(approvalsWords);
  if (!graph) return null;
  const [yes, no] = [goesTo(graph, approval.node, "approved"), goesTo(graph, approval.node, "rejected")];
  const name = (key: string) => (key === "end" || key.endsWith("//end") ? words.ends : key);
  return <Marked text={[yes && words.approveGoes(name(yes)), no && words.rejectGoes(name(no))].filter(Boolean).join(" ")} />;
}

/** Any decision: a word that has an edge, or an edited value. */
function OtherDialog({ approval, person, comment, onDone, onClose }: { approval: ApprovalInfo; person: string | undefined; comment: string; onDone: (decision: unknown) => void; onClose: () => void }) {
  const words = useWords(approvalsWords);
  const [text, setText] = useState('""');
  const { value, error } = readJson(text);
  return (
    <ActionDialog
      title={words.otherTitle(approval.node)} confirm={words.send} disabled={error !== undefined || value === undefined || value === ""} curl={curl("POST", `/api/v1/runs/${approval.run}/decide`, { node: approval.node, decision: value, by: person })}
      run={() => decide(approval, person, value, comment)} onDone={() => onDone(value)} onClose={onClose}
    ><JsonField label={words.decision} value={text} onChange={setText} hint={words.otherHint} rows={4} autoFocus /></ActionDialog>
  );
}

export function DecidedDetail({ line, onBack }: { line: AuditLine; onBack: () => void }) {
  const words = useWords(approvalsWords);
  const common = useWords(commonWords);
  const journal = useQuery({
    queryKey: ["runs", line.subject, "decisions"],
    queryFn: async ({ signal }) => {
      const decisions = [];
      let cursor: string | undefined;
      do {
        const page = await call("GET /api/v1/runs/{id}/journal", { path: { id: line.subject }, query: { cursor, limit: 500 }, signal });
        decisions.push(...decisionsOf(page.items));
        cursor = page.next ?? undefined;
      } while (cursor && decisions.length < 1000);
      return decisions;
    },
  });
  return (
    <section className="inbox-detail" aria-label={line.subject}>
      <button type="button" className="btn sm quiet narrow" onClick={onBack}><Icon name="left" small />{common.action.back}</button>
      <h2><Link className="link" to="/runs/$run" params={{ run: line.subject }}>{words.openRun} <span className="mono">{shortId(line.subject)}</span></Link></h2>
      {line.result !== "done" && <p className="err">{line.result} {line.status} {line.code}</p>}
      <Panel query={journal}>
        {(decisions) => (
          <div className="frame"><div className="scroll" tabIndex={0}><table>
            <thead><tr><th>{words.head.at}</th><th>{words.head.who}</th><th>{words.head.node}</th><th>{words.head.decision}</th><th>{words.head.comment}</th></tr></thead>
            <tbody>{decisions.map((one, n) => <tr key={n}><td><Clock at={one.at} /></td><td className="cut">{one.by ?? "–"}</td><td className="cut"><code>{one.node}</code></td><td className="cut"><code>{JSON.stringify(one.decision)?.slice(0, 120)}</code></td><td className="clip" title={one.comment}>{one.comment ?? ""}</td></tr>)}</tbody>
          </table></div></div>
        )}
      </Panel>
    </section>
  );
}
