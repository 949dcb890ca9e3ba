import { Link } from "@tanstack/react-router";
import { Fragment, type ReactNode } from "react";
import { call } from "../../api/client";
import type { AuditLine } from "../../api/openapi";
import { PageFrame } from "../../app/PageFrame";
import { useSearchParams } from "../../app/search-state";
import { shortId } from "../../format/number";
import { EmptyList, EmptyMatch } from "../../parts/Empty";
import { Icon, type IconName } from "../../parts/Icon";
import { ListFoot, useList } from "../../parts/List";
import { Panel } from "../../parts/Panel";
import { useRowCursor } from "../../parts/rows";
import type { Family } from "../../parts/status";
import { Segments } from "../../parts/Tabs";
import { Clock } from "../../parts/Time";
import { auditWords } from "../../words/audit";
import { useWords } from "../../words/language";

/** The changes that the server records; an address may name others. */
const CHANGES = [
  "flow.create", "flow.publish", "flow.instantiate", "run.cancel", "run.pause", "run.resume", "run.step", "run.retry", "run.rerun", "run.continue", "run.signal", "run.decide", "run.budget",
  "job.cancel", "job.retry", "dlq.replay", "dlq.discard", "queue.limit", "queue.pause", "queue.resume", "schedule.create", "schedule.change", "schedule.delete", "schedule.toggle", "schedule.trigger",
  "worker.drain", "worker.undrain", "worker.takeover", "account.open", "account.deposit", "price.set", "price.delete", "service.set", "server.repair", "bulk.start", "bulk.cancel",
];

export function AuditPage() {
  const words = useWords(auditWords);
  const [search, change] = useSearchParams();
  const { who, what, subject } = search;
  const order = search.order === "oldest" ? "oldest" : "newest";
  const list = useList<AuditLine>(["audit", who, what, subject, order], (cursor, signal) => call("GET /api/v1/audit", { query: { who, what, subject, order, cursor, limit: 100 }, signal }));
  const filter = [who && `who:${who}`, what && `what:${what}`, subject && `subject:${subject}`].filter(Boolean).join(" ");
  return (
    <PageFrame title={words.title} actions={<button type="button" className="btn sm quiet" onClick={() => void list.refetch()}><Icon name="retry" small />{words.refresh}</button>}>
      <Filters key={filter} who={who} what={what} subject={subject} onChange={change} />
      <Panel query={list}>
        {(lines) => lines.length > 0
          ? <><div className="row"><span className="grow" /><Segments label={words.order} value={order} onChange={(next) => change({ order: next === "newest" ? undefined : next })} items={[{ id: "newest", label: words.newest }, { id: "oldest", label: words.oldest }]} /></div><AuditTable lines={lines} open={search.line} onOpen={(line) => change({ line })} /><ListFoot list={list} shown={lines.length} /></>
          : filter ? <EmptyMatch filter={filter} onClear={() => change({ who: undefined, what: undefined, subject: undefined })} />
            : <EmptyList icon="audit" title={words.none} text={words.noneText} command="windlass audit" />}
      </Panel>
    </PageFrame>
  );
}

function Filters({ who, what, subject, onChange }: { who?: string; what?: string; subject?: string; onChange: (change: Record<string, string | undefined>) => void }) {
  const words = useWords(auditWords);
  const all = what && !CHANGES.includes(what) ? [what, ...CHANGES] : CHANGES;
  return (
    <form className="row wrap audit-filter" onSubmit={(event) => {
      event.preventDefault();
      const fields = new FormData(event.currentTarget);
      const text = (name: string) => String(fields.get(name) ?? "").trim() || undefined;
      onChange({ who: text("who"), subject: text("subject"), what: text("what") });
    }}>
      <label className="field"><span>{words.filters.who}</span><input className="input" name="who" data-search defaultValue={who ?? ""} /></label>
      <label className="field"><span>{words.filters.what}</span><select className="input" name="what" defaultValue={what ?? ""} onChange={(event) => onChange({ what: event.target.value || undefined })}><option value="">{words.filters.any}</option>{all.map((one) => <option key={one} value={one}>{one}</option>)}</select></label>
      <label className="field"><span>{words.filters.subject}</span><input className="input mono" name="subject" defaultValue={subject ?? ""} /></label>
      <button type="submit" className="btn">{words.apply}</button>
    </form>
  );
}

const RESULTS: Record<string, { family: Family; icon: IconName }> = { done: { family: "ok", icon: "check" }, refused: { family: "retry", icon: "warn" }, failed: { family: "fail", icon: "x" } };

function AuditTable({ lines, open, onOpen }: { lines: AuditLine[]; open: string | undefined; onOpen: (line: string | undefined) => void }) {
  const words = useWords(auditWords);
  const turn = (line: AuditLine | undefined) => line && onOpen(open === String(line.seq) ? undefined : String(line.seq));
  const [at, setAt] = useRowCursor({ count: lines.length, open: (n) => turn(lines[n]) });
  return (
    <div className="frame"><div className="scroll"><table>
      <thead><tr><th>{words.head.at}</th><th>{words.head.who}</th><th>{words.head.what}</th><th>{words.head.subject}</th><th>{words.head.result}</th><th>{words.head.reason}</th></tr></thead>
      <tbody>{lines.map((line, n) => {
        const look = RESULTS[line.result] ?? { family: "idle", icon: "unknown" };
        return (
          <Fragment key={line.seq}>
            <tr data-row={n} className={`link-row${n === at ? " cursor" : ""}`} onClick={(event) => { if (!(event.target as Element).closest("a")) { setAt(n); turn(line); } }}>
              <td className="dim"><Clock at={line.at} /></td><td className="cut"><Link to="." search={{ who: line.who } as never}>{line.who}</Link></td><td className="mono">{line.what}</td>
              <td className="cut"><Subject line={line} /></td>
              <td><span className={`bare ${look.family}`} title={line.code ?? undefined}><Icon name={look.icon} /><span>{words.result[line.result] ?? line.result}</span></span></td>
              <td className="clip dim" title={line.reason ?? undefined}>{line.reason ?? ""}</td>
            </tr>
            {open === String(line.seq) && <tr><td colSpan={6} className="small dim" style={{ whiteSpace: "normal", padding: "var(--s2) var(--s3)" }}><span className="mono text">#{line.seq} {line.method} {line.path} → {line.status} {line.code}</span>{line.ip && <> · {words.head.from} <span className="mono">{line.ip}</span></>}{line.reason && <p className="text">{line.reason}</p>}</td></tr>}
          </Fragment>
        );
      })}</tbody>
    </table></div></div>
  );
}

/** The subject of a line, with a link where it has a page. */
function Subject({ line }: { line: AuditLine }): ReactNode {
  const { subject, what } = line;
  if (!subject) return "–";
  const kind = what.split(".")[0];
  if (subject.startsWith("run_")) return <Link className="mono" to="/runs/$run" params={{ run: subject }}>{shortId(subject)}</Link>;
  if (subject.startsWith("bulk_")) return <Link className="mono" to="/bulk/$bulk" params={{ bulk: subject }}>{shortId(subject)}</Link>;
  if (kind === "job") return <Link className="mono" to="/jobs/$job" params={{ job: subject }}>{shortId(subject)}</Link>;
  if (kind === "flow") return <Link to="/flows/$flow" params={{ flow: subject }}>{subject}</Link>;
  if (kind === "queue" || kind === "dlq") return <Link to="/queues/$queue" params={{ queue: subject }}>{subject}</Link>;
  if (kind === "schedule") return <Link to="/schedules/$schedule" params={{ schedule: subject }}>{shortId(subject)}</Link>;
  if (kind === "account") return <Link to="/accounts/$account" params={{ account: subject }}>{subject}</Link>;
  return <>{subject}</>;
}
