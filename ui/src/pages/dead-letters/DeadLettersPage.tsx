import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Fragment, useState } from "react";
import { call } from "../../api/client";
import type { DeadLetter, DeadLetterGroupInfo } from "../../api/openapi";
import { PageFrame } from "../../app/PageFrame";
import { useSearchParams } from "../../app/search-state";
import { count, shortId } from "../../format/number";
import { useRefetch } from "../../live/use-refetch";
import { EmptyList, EmptyMatch } from "../../parts/Empty";
import { ErrorPanel } from "../../parts/Errors";
import { Icon } from "../../parts/Icon";
import { Json } from "../../parts/Json";
import { ListFoot, useList } from "../../parts/List";
import { Marked } from "../../parts/Marked";
import { Panel } from "../../parts/Panel";
import { useRowCursor } from "../../parts/rows";
import { Segments } from "../../parts/Tabs";
import { Ago } from "../../parts/Time";
import { commonWords } from "../../words/common";
import { deadLettersWords } from "../../words/dead-letters";
import { useWords } from "../../words/language";
import { Attempts } from "../jobs/JobPage";
import type { LetterTarget } from "./letters";
import { DiscardDialog, ReplayDialog } from "./LetterDialogs";
import "./dead-letters.css";

type Group = DeadLetterGroupInfo & { queue: string };
type Action = { verb: "replay" | "discard"; targets: { label: string; target: LetterTarget }[]; sample?: DeadLetter };

/** The groups of all queues with dead letters, largest first. */
function useGroups() {
  const queues = useQuery({
    queryKey: ["dead-letters", "queues"],
    queryFn: async ({ signal }) => {
      const names: { name: string; count: number }[] = [];
      let cursor: string | undefined;
      do {
        const page = await call("GET /api/v1/queues", { query: { cursor, limit: 200 }, signal });
        names.push(...page.queues.filter(({ dead_letters }) => dead_letters > 0).map(({ name, dead_letters }) => ({ name, count: dead_letters })));
        cursor = page.next ?? undefined;
      } while (cursor);
      return names;
    },
  });
  const answers = useQueries({
    queries: (queues.data ?? []).map(({ name }) => ({
      queryKey: ["dead-letters", "groups", name],
      queryFn: ({ signal }: { signal: AbortSignal }) => call("GET /api/v1/queues/{name}/dlq/groups", { path: { name }, signal }),
    })),
  });
  const groups: Group[] = answers.flatMap(({ data }) => (data?.groups ?? []).map((group) => ({ ...group, queue: data?.queue ?? "" })));
  // By age: the order of counts would move rows under the mouse while letters come in.
  groups.sort((a, b) => a.queue.localeCompare(b.queue) || a.first_at.localeCompare(b.first_at) || a.fingerprint.localeCompare(b.fingerprint));
  return { queues, groups, isLoading: answers.some(({ isPending }) => isPending), errors: answers.flatMap(({ error, refetch }) => (error ? [{ error, refetch }] : [])) };
}

const MESSAGE_SHOWN = 400;
export const groupKey = ({ queue, fingerprint }: Pick<Group, "queue" | "fingerprint">) => `${queue} ${fingerprint}`;

export function DeadLettersPage() {
  const words = useWords(deadLettersWords);
  const [search, change] = useSearchParams();
  const { queues, groups, isLoading, errors } = useGroups();
  useRefetch("dead_letters", ["dead-letters"]);
  const [marked, setMarked] = useState<ReadonlyMap<string, DeadLetter>>(new Map());
  const [action, setAction] = useState<Action>();
  const shown = groups.filter(({ queue }) => !search.queue || queue === search.queue);
  const all = (queues.data ?? []).filter(({ name }) => !search.queue || name === search.queue);
  const total = all.reduce((sum, { count: n }) => sum + n, 0);
  const mark = (letter: DeadLetter, isMarked: boolean) => {
    const next = new Map(marked);
    if (isMarked) next.set(letter.task_id, letter);
    else next.delete(letter.task_id);
    setMarked(next);
  };
  const begin = (verb: Action["verb"], group?: Group) => setAction(actionOf(verb, words, group, [...marked.values()], shown, all));
  const canAct = marked.size > 0 || search.queue !== undefined || all.length === 1;
  return (
    <PageFrame
      title={words.title}
      actions={total > 0 && <>
        <button type="button" className={`btn danger${marked.size > 0 ? "" : " wide"}`} disabled={!canAct} onClick={() => begin("discard")}>{words.discard}</button>
        <button type="button" className={`btn primary${marked.size > 0 ? "" : " wide"}`} disabled={!canAct} onClick={() => begin("replay")}><Icon name="retry" small />{words.replay}</button>
      </>}
    >
      <Panel query={queues}>
        {(names) => names.length === 0 && !search.queue
          ? <EmptyList icon="letters" title={words.none} text={words.noneText} command="windlass dlq groups" />
          : (
            <>
              <div className="head">
                <label className="row"><span className="hidden-text">{words.queue}</span>
                  <select className="input" data-search value={search.queue ?? ""} onChange={(event) => { setMarked(new Map()); change({ queue: event.target.value || undefined, open: undefined }); }}>
                    <option value="">{words.allQueues}</option>
                    {names.map(({ name, count: n }) => <option key={name} value={name}>{name} ({count(n)})</option>)}
                    {search.queue && !names.some(({ name }) => name === search.queue) && <option value={search.queue}>{search.queue}</option>}
                  </select>
                </label>
                {search.queue && <Segments label={words.views} value={search.view === "letters" ? "letters" : "groups"} onChange={(view) => change({ view: view === "groups" ? undefined : view })} items={[{ id: "groups", label: words.groups }, { id: "letters", label: words.letters }]} />}
                <span className="grow" /><span className="small dim">{words.sum(count(total), shown.length)}. {words.kept}</span>
              </div>
              {errors.map(({ error, refetch }, n) => <ErrorPanel key={n} error={error} onRetry={() => void refetch()} />)}
              {names.length > 0 && total === 0 || names.length === 0
                ? <EmptyMatch filter={`queue:${search.queue}`} onClear={() => change({ queue: undefined, view: undefined })} />
                : search.view === "letters" && search.queue
                  ? <div className="frame"><div className="scroll"><table><LetterHead /><LetterRows queue={search.queue} marked={marked} onMark={mark} onAct={(verb, letter) => setAction(actionOf(verb, words, undefined, [letter], shown, all))} /></table></div></div>
                  : !isLoading && <GroupTable groups={shown} open={search.open} onOpen={(open) => change({ open })} marked={marked} onMark={mark} onAct={begin} onLetter={(verb, letter) => setAction(actionOf(verb, words, undefined, [letter], shown, all))} />}
              <p className="small faint">{words.note}</p>
            </>
          )}
      </Panel>
      {action?.verb === "replay" && <ReplayDialog targets={action.targets} sample={action.sample} onClose={() => { setAction(undefined); setMarked(new Map()); }} />}
      {action?.verb === "discard" && <DiscardDialog targets={action.targets} sample={action.sample} onClose={() => { setAction(undefined); setMarked(new Map()); }} />}
    </PageFrame>
  );
}

/** The choices of a dialog: the marked letters, the group, the queue. All letters of one action are of one queue. */
function actionOf(verb: Action["verb"], words: (typeof deadLettersWords)["en"], group: Group | undefined, marked: DeadLetter[], groups: Group[], queues: { name: string; count: number }[]): Action {
  const targets: Action["targets"] = [];
  const queue = group?.queue ?? marked[0]?.queue_name ?? queues[0]?.name ?? "";
  const ofQueue = marked.filter((letter) => letter.queue_name === queue);
  const byGroup = group ?? groups.find(({ queue: name, fingerprint }) => name === queue && ofQueue.length > 0 && ofQueue.every((letter) => letter.fingerprint === fingerprint));
  if (!group && ofQueue.length > 0) targets.push({ label: words.selected, target: { queue, ids: ofQueue.map(({ task_id }) => task_id), count: ofQueue.length } });
  if (byGroup) targets.push({ label: words.thisGroup, target: { queue, fingerprint: byGroup.fingerprint, message: byGroup.error.message.slice(0, MESSAGE_SHOWN), count: byGroup.count } });
  const whole = queues.find(({ name }) => name === queue);
  if (whole) targets.push({ label: words.wholeQueue, target: { queue, count: whole.count } });
  return { verb, targets, sample: ofQueue[0] };
}

interface GroupTableProps {
  groups: Group[];
  open: string | undefined;
  onOpen: (key: string | undefined) => void;
  marked: ReadonlyMap<string, DeadLetter>;
  onMark: (letter: DeadLetter, isMarked: boolean) => void;
  onAct: (verb: Action["verb"], group: Group) => void;
  onLetter: (verb: Action["verb"], letter: DeadLetter) => void;
}

function GroupTable({ groups, open, onOpen, marked, onMark, onAct, onLetter }: GroupTableProps) {
  const words = useWords(deadLettersWords);
  const turn = (group: Group | undefined) => group && onOpen(open === groupKey(group) ? undefined : groupKey(group));
  const [at, setAt] = useRowCursor({ count: groups.length, open: (n) => turn(groups[n]) });
  return (
    <div className="frame letters"><div className="scroll">
      <table>
        <thead><tr><th>{words.head.queue}</th><th className="num">{words.head.letters}</th><th>{words.head.last}</th><th className="wide">{words.head.first}</th><th>{words.head.error}</th><th><span className="hidden-text">{words.replay}</span></th></tr></thead>
        <tbody>
          {groups.map((group, n) => {
            const isOpen = open === groupKey(group);
            return (
              <Fragment key={groupKey(group)}>
                <tr data-row={n} data-group={group.fingerprint} className={`link-row${n === at ? " cursor" : ""}`} onClick={(event) => { if (!(event.target as Element).closest("a, button")) { setAt(n); turn(group); } }}>
                  <td className="cut"><button type="button" className="row" aria-expanded={isOpen} title={words.open} onClick={() => turn(group)}><Icon name={isOpen ? "down" : "right"} small />{group.queue}</button></td>
                  <td className="num">{count(group.count)}</td><td className="dim"><Ago at={group.last_at} /></td><td className="dim wide"><Ago at={group.first_at} /></td>
                  <td className="clip"><span className="err" title={group.error.message.slice(0, MESSAGE_SHOWN)}><Marked text={group.error.message.slice(0, MESSAGE_SHOWN)} /></span> <span className="mono faint">{group.error.kind}</span></td>
                  <td className="num"><button type="button" className="btn sm" onClick={() => onAct("replay", group)}>{words.replay}</button> <button type="button" className="btn sm danger" onClick={() => onAct("discard", group)}>{words.discard}</button></td>
                </tr>
                {isOpen && <tr className="inside"><td colSpan={6}><table><LetterHead /><LetterRows queue={group.queue} fingerprint={group.fingerprint} marked={marked} onMark={onMark} onAct={onLetter} /></table></td></tr>}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </div></div>
  );
}

function LetterHead() {
  const { head } = useWords(deadLettersWords);
  return <thead><tr><th><span className="hidden-text">{useWords(commonWords).action.select}</span></th><th>{head.job}</th><th>{head.attempts}</th><th>{head.failed}</th><th>{head.payload}</th><th><span className="hidden-text">{head.error}</span></th></tr></thead>;
}

interface LetterRowsProps {
  queue: string;
  fingerprint?: string;
  marked: ReadonlyMap<string, DeadLetter>;
  onMark: GroupTableProps["onMark"];
  onAct: GroupTableProps["onLetter"];
}

function LetterRows({ queue, fingerprint, marked, onMark, onAct }: LetterRowsProps) {
  const [open, setOpen] = useState<string>();
  const list = useList<DeadLetter>(["dead-letters", "letters", queue, fingerprint], async (after, signal) => {
    const page = await call("GET /api/v1/queues/{name}/dlq", { path: { name: queue }, query: { fingerprint, after, count: 50, format: "objects" }, signal });
    return { items: page.items.filter((item): item is DeadLetter => typeof item !== "string"), next: page.next };
  });
  const letters = list.data ?? [];
  if (list.isError || !list.data) return <tbody><tr><td colSpan={6}><Panel query={list} lines={2}>{() => null}</Panel></td></tr></tbody>;
  return (
    <tbody>
      {letters.map((letter) => (
        <LetterRow
          key={letter.task_id} letter={letter} isMarked={marked.has(letter.task_id)} isOpen={open === letter.task_id}
          onMark={(isMarked) => onMark(letter, isMarked)} onOpen={() => setOpen(open === letter.task_id ? undefined : letter.task_id)} onAct={(verb) => onAct(verb, letter)}
        />
      ))}
      {(list.hasNextPage || letters.length > 5) && <tr><td colSpan={6}><ListFoot list={list} shown={letters.length} /></td></tr>}
    </tbody>
  );
}

function LetterRow({ letter, isMarked, isOpen, onMark, onOpen, onAct }: { letter: DeadLetter; isMarked: boolean; isOpen: boolean; onMark: (isMarked: boolean) => void; onOpen: () => void; onAct: (verb: Action["verb"]) => void }) {
  const words = useWords(deadLettersWords);
  return (
    <>
      <tr className={isMarked ? "sel" : undefined} data-letter={letter.task_id}>
        <td><input type="checkbox" checked={isMarked} aria-label={words.select(shortId(letter.task_id))} onChange={(event) => onMark(event.target.checked)} /></td>
        <td className="cut"><button type="button" className="row" aria-expanded={isOpen} title={words.attempts} onClick={onOpen}><Icon name={isOpen ? "down" : "right"} small /><span className="cut">{letter.name}</span> <span className="mono dim">{shortId(letter.task_id)}</span></button></td>
        <td><span className="tries" aria-hidden="true">{Array.from({ length: Math.min(letter.attempt, 8) }, (_, n) => <i key={n} />)}</span> <span className="dim">{letter.attempt}</span></td>
        <td className="dim"><Ago at={letter.failed_at} /></td>
        <td className="clip mono dim">{JSON.stringify(letter.payload)?.slice(0, 300)}</td>
        <td className="num"><button type="button" className="btn sm quiet" onClick={() => onAct("replay")}>{words.replay}</button></td>
      </tr>
      {isOpen && (
        <tr className="inside"><td colSpan={6}>
          <div className="stack pad">
            <div className="errbox"><div className="row"><span>{letter.error.kind}</span><span className="grow" /><Link className="link" to="/jobs/$job" params={{ job: letter.task_id }}>{words.openJob}</Link></div><p>{letter.error.message}</p></div>
            <Attempts id={letter.task_id} />
            <Json value={letter.payload} label={words.payload} />
          </div>
        </td></tr>
      )}
    </>
  );
}
