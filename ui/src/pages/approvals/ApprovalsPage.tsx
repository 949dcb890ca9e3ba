import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { actor, call, setActor } from "../../api/client";
import type { ApprovalInfo, AuditLine } from "../../api/openapi";
import { PageFrame } from "../../app/PageFrame";
import { useSearchParams } from "../../app/search-state";
import { shortId } from "../../format/number";
import { duration, ms } from "../../format/time";
import { useTicking } from "../../format/now";
import { useKeys } from "../../keys/keys";
import { useRefetch } from "../../live/use-refetch";
import { EmptyList } from "../../parts/Empty";
import { Icon } from "../../parts/Icon";
import { ListFoot, NewRows, useHeldRows, useList } from "../../parts/List";
import { Panel } from "../../parts/Panel";
import { Tabs } from "../../parts/Tabs";
import { Ago } from "../../parts/Time";
import { approvalsWords } from "../../words/approvals";
import { commonWords } from "../../words/common";
import { useWords } from "../../words/language";
import { approvalKey, mayDecide } from "./approvals";
import { ApprovalDetail, DecidedDetail } from "./ApprovalDetail";
import "./approvals.css";

/** Less time than this is shown as urgent. */
const SOON_MS = 600_000;

export function ApprovalsPage() {
  const words = useWords(approvalsWords);
  const [search] = useSearchParams();
  const tab = search.tab === "all" || search.tab === "decided" ? search.tab : "mine";
  const [person, setPerson] = useState(actor());
  const list = useList<ApprovalInfo>(["approvals"], readApprovals);
  useRefetch("approvals", ["approvals"]);
  const all = list.data ?? [];
  const mine = all.filter((approval) => mayDecide(approval, person));
  return (
    <PageFrame title={words.title} flush>
      <div className="inbox-tabs">
        <Tabs label={words.tabs} current={tab} items={[{ id: "mine", label: words.mine, count: mine.length }, { id: "all", label: words.all, count: all.length }, { id: "decided", label: words.decided }]} />
        <span className="grow" /><span className="row small dim wide"><kbd>j</kbd><kbd>k</kbd> {words.move} <kbd>a</kbd> {words.approveKey} <kbd>x</kbd> {words.rejectKey}</span>
      </div>
      {tab === "decided"
        ? <Decided />
        : <Panel query={list}>{() => <Inbox key={tab} list={list} approvals={tab === "mine" ? mine : all} others={all.length - mine.length} isMine={tab === "mine"} person={person} onPerson={(name) => { setActor(name); setPerson(actor()); }} />}</Panel>}
    </PageFrame>
  );
}

/** Reads pages until one has approvals: a page of the route examines runs, and may be empty. */
async function readApprovals(cursor: string | undefined, signal: AbortSignal) {
  let page = await call("GET /api/v1/approvals", { query: { cursor, limit: 100 }, signal });
  for (let n = 0; page.items.length === 0 && page.next && n < 20; n += 1) page = await call("GET /api/v1/approvals", { query: { cursor: page.next, limit: 100 }, signal });
  return page;
}

interface InboxProps {
  list: ReturnType<typeof useList<ApprovalInfo>>;
  approvals: ApprovalInfo[];
  others: number;
  isMine: boolean;
  person: string | undefined;
  onPerson: (name: string) => void;
}

function Inbox({ list, approvals, others, isMine, person, onPerson }: InboxProps) {
  const words = useWords(approvalsWords);
  const [search, change] = useSearchParams();
  const { rows, waiting, show } = useHeldRows(approvals, approvalKey, isMine ? "mine" : "all");
  const chosen = rows.find((approval) => approvalKey(approval) === search.open);
  // At phone width an address without a selection shows the list alone.
  const selected = chosen ?? rows[0];
  const choose = (approval: ApprovalInfo | undefined) => change({ open: approval && approvalKey(approval) });
  const step = (by: number) => {
    const at = rows.indexOf(selected as ApprovalInfo);
    const next = rows[Math.max(0, Math.min(rows.length - 1, (chosen ? at : -1) + by))];
    if (!next) return;
    choose(next);
    document.querySelector(`[data-approval="${CSS.escape(approvalKey(next))}"]`)?.scrollIntoView({ block: "nearest" });
  };
  useKeys([
    { keys: "j", label: (of) => commonWords[of].keys.down, run: () => step(1) },
    { keys: "k", label: (of) => commonWords[of].keys.up, run: () => step(-1) },
    { keys: "Escape", label: (of) => commonWords[of].keys.back, run: () => choose(undefined) },
  ], (of) => approvalsWords[of].title);
  if (rows.length === 0) {
    return isMine && others > 0
      ? <div><EmptyList icon="approvals" title={words.noneMine} text={words.noneMineText(others)}><Link className="btn" to="." search={{ tab: "all" } as never}>{words.showAll}</Link></EmptyList><Name person={person} onPerson={onPerson} /></div>
      : <EmptyList icon="approvals" title={words.none} text={words.noneText} command="windlass approvals list" />;
  }
  return (
    <div className={`inbox${chosen ? " has-open" : ""}`}>
      <div className="inbox-list holds-new">
        <NewRows waiting={waiting} onShow={show} />
        <ul aria-label={words.list}>
          {rows.map((approval) => (
            <li key={approvalKey(approval)}>
              <button type="button" data-approval={approvalKey(approval)} aria-current={approval === selected ? "true" : undefined} onClick={() => choose(approval)}><Row approval={approval} /></button>
            </li>
          ))}
        </ul>
        {isMine && others > 0 && <p className="small dim pad">{words.noneMineText(others)} <Link className="link" to="." search={{ tab: "all" } as never}>{words.showAll}</Link></p>}
        {list.hasNextPage && <div className="pad"><ListFoot list={list} shown={rows.length} /></div>}
        <Name person={person} onPerson={onPerson} />
      </div>
      {selected && <ApprovalDetail key={approvalKey(selected)} approval={selected} person={person} onBack={() => choose(undefined)} />}
    </div>
  );
}

function Row({ approval }: { approval: ApprovalInfo }) {
  const words = useWords(approvalsWords);
  return (
    <>
      <span className="row"><span className="strong cut grow">{approval.flow}</span><Left until={approval.until} /></span>
      <span className="cut title">{approval.title || approval.node}</span>
      <span className="small dim cut">{approval.node} · {approval.assignees.length === 0 ? words.everyone : approval.assignees.join(", ")} · <Ago at={approval.since} /></span>
    </>
  );
}

/** The time that is left for a decision. */
export function Left({ until }: { until: string | null | undefined }) {
  const words = useWords(approvalsWords);
  const end = ms(until);
  const text = useTicking((now) => (end === undefined ? words.noLimit : words.left(duration(Math.max(0, end - now)))));
  const isSoon = useTicking((now) => (end !== undefined && end - now < SOON_MS ? 1 : 0)) === 1;
  return <span className={`small nowrap row ${isSoon ? "retry fg" : "dim"}`} style={{ gap: 4 }}>{isSoon && <Icon name="clock" small />}{text}</span>;
}

/** The name under which this browser decides. */
function Name({ person, onPerson }: { person: string | undefined; onPerson: (name: string) => void }) {
  const words = useWords(approvalsWords);
  const [text, setText] = useState(person ?? "");
  const [isOpen, setOpen] = useState(false);
  if (person && !isOpen) return <p className="small dim pad">{words.asPerson(person)} <button type="button" className="link" onClick={() => setOpen(true)}>{words.change}</button></p>;
  return (
    <form className="pad" onSubmit={(event) => { event.preventDefault(); onPerson(text.trim()); setOpen(false); }}>
      <label className="field"><span>{words.name}</span><span className="row"><input className="input" name="person" value={text} maxLength={200} autoComplete="username" onChange={(event) => setText(event.target.value)} /><button type="submit" className="btn">{words.nameSave}</button></span><small>{words.nameText}</small></label>
    </form>
  );
}

function Decided() {
  const words = useWords(approvalsWords);
  const [search, change] = useSearchParams();
  const list = useList<AuditLine>(["approvals", "decided"], (cursor, signal) => call("GET /api/v1/audit", { query: { what: "run.decide", cursor, limit: 50 }, signal }));
  useRefetch("approvals", ["approvals", "decided"]);
  const { rows, waiting, show } = useHeldRows(list.data, (line) => String(line.seq));
  const selected = rows.find((line) => String(line.seq) === search.line) ?? rows[0];
  return (
    <Panel query={list}>
      {() => rows.length === 0
        ? <EmptyList icon="approvals" title={words.noneDecided} text={words.noneDecidedText} command="windlass audit --what run.decide" />
        : (
          <div className={`inbox${search.line ? " has-open" : ""}`}>
            <div className="inbox-list holds-new">
              <NewRows waiting={waiting} onShow={show} />
              <ul aria-label={words.decided}>
                {rows.map((line) => (
                  <li key={line.seq}>
                    <button type="button" aria-current={line === selected ? "true" : undefined} onClick={() => change({ line: String(line.seq) })}>
                      <span className="row"><span className="strong cut grow">{line.who}</span><span className="small dim"><Ago at={line.at} /></span></span>
                      <span className={line.result === "done" ? "mono dim" : "err small"}>{line.result === "done" ? shortId(line.subject) : `${shortId(line.subject)} · ${line.result} ${line.code ?? ""}`}</span>
                    </button>
                  </li>
                ))}
              </ul>
              <div className="pad"><ListFoot list={list} shown={rows.length} /></div>
            </div>
            {selected && <DecidedDetail key={selected.seq} line={selected} onBack={() => change({ line: undefined })} />}
          </div>
        )}
    </Panel>
  );
}
