import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { call } from "../../api/client";
import type { AccountInfo, LedgerEntry } from "../../api/openapi";
import { PageFrame } from "../../app/PageFrame";
import { useSearchParams } from "../../app/search-state";
import { money, shortId } from "../../format/number";
import { useRefetch } from "../../live/use-refetch";
import { EmptyList, EmptyMatch } from "../../parts/Empty";
import { ErrorPanel } from "../../parts/Errors";
import { Icon } from "../../parts/Icon";
import { ListFoot, NewRows, useHeldRows, useList } from "../../parts/List";
import { Panel } from "../../parts/Panel";
import { Segments } from "../../parts/Tabs";
import { Ago, Clock } from "../../parts/Time";
import { accountsWords } from "../../words/accounts";
import { useWords } from "../../words/language";
import { DepositDialog } from "./AccountDialogs";
import { ledgerCsv } from "./ledger";

export function AccountPage() {
  const { account: id } = useParams({ strict: false }) as { account: string };
  const words = useWords(accountsWords);
  const account = useQuery({ queryKey: ["accounts", id], queryFn: ({ signal }) => call("GET /api/v1/accounts/{id}", { path: { id }, signal }) });
  useRefetch("runs", ["accounts", id]);
  const [isPaying, setPaying] = useState(false);
  return (
    <PageFrame title={id} parent={{ to: "/accounts", label: words.title }} actions={account.data && <button type="button" className="btn primary" onClick={() => setPaying(true)}>{words.deposit}</button>}>
      <Panel query={account}>
        {(one) => (
          <>
            <div className="head"><h1 className="text">{one.name}</h1>{one.name !== one.id && <span className="mono dim">{one.id}</span>}</div>
            <div className="figures">
              <div><span className="dim">{words.facts.balance}</span><b className={one.balance < 0 ? "err" : undefined}>{money(one.balance)}</b></div>
              <div><span className="dim">{words.facts.held}</span><b>{money(one.held)}</b><span className="small faint">{words.heldNote}</span></div>
              <div><span className="dim">{words.facts.opened}</span><b><Ago at={one.created_at} /></b></div>
            </div>
            {isPaying && <DepositDialog account={one} onClose={() => setPaying(false)} />}
            <Ledger account={one} />
          </>
        )}
      </Panel>
    </PageFrame>
  );
}

async function wholeLedger(id: string): Promise<LedgerEntry[]> {
  const entries: LedgerEntry[] = [];
  let cursor: string | undefined;
  do {
    const page = await call("GET /api/v1/accounts/{id}/ledger", { path: { id }, query: { order: "oldest", cursor, limit: 1000 } });
    entries.push(...page.items);
    cursor = page.next ?? undefined;
  } while (cursor);
  return entries;
}

function saveFile(name: string, text: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

function Ledger({ account }: { account: AccountInfo }) {
  const words = useWords(accountsWords);
  const [search, change] = useSearchParams();
  const order = search.order === "oldest" ? "oldest" : "newest";
  const list = useList<LedgerEntry>(["accounts", account.id, "ledger", order, search.run], (cursor, signal) => call("GET /api/v1/accounts/{id}/ledger", { path: { id: account.id }, query: { order, run: search.run, cursor, limit: 100 }, signal }));
  const { rows, waiting, show } = useHeldRows(list.data, (entry) => String(entry.seq), `${order} ${search.run}`);
  const csv = useMutation({ mutationFn: () => wholeLedger(account.id), onSuccess: (entries) => saveFile(`${account.id.replace(/[^\w.-]/g, "_")}-ledger.csv`, ledgerCsv(entries)) });
  return (
    <section className="stack">
      <div className="row wrap">
        <h2>{words.ledger}</h2><SumCheck id={account.id} /><span className="grow" />
        {search.run && <span className="chip"><b>{words.run}</b><span className="mono">{shortId(search.run)}</span><button type="button" aria-label={words.filterRun} onClick={() => change({ run: undefined })}><Icon name="x" /></button></span>}
        <Segments label={words.order} value={order} onChange={(next) => change({ order: next === "newest" ? undefined : next })} items={[{ id: "newest", label: words.newest }, { id: "oldest", label: words.oldest }]} />
        <button type="button" className="btn sm" disabled={csv.isPending} onClick={() => csv.mutate()}><Icon name="download" small />{words.download}</button>
      </div>
      {csv.isError && <ErrorPanel error={csv.error} onRetry={() => csv.mutate()} />}
      <Panel query={list}>
        {() => rows.length > 0
          ? <div className="holds-new"><NewRows waiting={waiting} onShow={show} /><LedgerTable entries={rows} /><ListFoot list={list} shown={rows.length} /></div>
          : search.run ? <EmptyMatch filter={`run:${search.run}`} onClear={() => change({ run: undefined })} />
            : <EmptyList icon="accounts" title={words.noEntries} text={words.noneText} command={`windlass account deposit ${account.id} 100000 --key first`} />}
      </Panel>
    </section>
  );
}

/** Reads all entries and compares their sum with the balance after the last of them. */
function SumCheck({ id }: { id: string }) {
  const words = useWords(accountsWords);
  const check = useMutation({
    mutationFn: async () => {
      const entries = await wholeLedger(id);
      return { sum: entries.reduce((sum, entry) => sum + entry.amount, 0), balance: entries.at(-1)?.balance_after ?? 0 };
    },
  });
  if (check.isPending) return <span className="small dim">{words.checking}</span>;
  if (check.isError) return <ErrorPanel error={check.error} onRetry={() => check.mutate()} />;
  if (!check.data) return <button type="button" className="btn sm quiet" onClick={() => check.mutate()}>{words.check}</button>;
  const { sum, balance } = check.data;
  return sum === balance
    ? <span className="bare ok" data-sum="ok"><Icon name="check" /><span>{words.sumOk}</span></span>
    : <span className="bare fail" data-sum="off"><Icon name="x" /><span>{words.sumOff(money(sum), money(balance))}</span></span>;
}

function LedgerTable({ entries }: { entries: LedgerEntry[] }) {
  const words = useWords(accountsWords);
  return (
    <div className="frame"><div className="scroll" tabIndex={0}><table>
      <thead><tr><th>{words.entry.at}</th><th>{words.entry.kind}</th><th className="num">{words.entry.amount}</th><th className="num">{words.entry.balance}</th><th>{words.entry.for}</th><th>{words.entry.key}</th></tr></thead>
      <tbody>{entries.map((entry) => (
        <tr key={entry.seq}>
          <td className="dim"><Clock at={entry.at} /></td><td title={entry.kind}>{words.kinds[entry.kind] ?? entry.kind}</td>
          <td className={`num${entry.amount > 0 ? " ok fg" : ""}`}>{entry.amount > 0 ? "+" : ""}{money(entry.amount)}</td><td className="num">{money(entry.balance_after)}</td>
          <td className="cut">{entry.run ? <><Link className="link mono" to="/runs/$run" params={{ run: entry.run }} search={entry.node ? { node: entry.node } as never : undefined}>{shortId(entry.run)}</Link> {entry.node && <code>{entry.node}</code>}</> : entry.task ? <Link className="link mono" to="/jobs/$job" params={{ job: entry.task }}>{shortId(entry.task)}</Link> : "–"}{entry.borne_by_platform ? <span className="tag">{words.entry.platform} {money(entry.borne_by_platform)}</span> : null}</td>
          <td className="clip mono faint" title={entry.key}>{entry.key}</td>
        </tr>
      ))}</tbody>
    </table></div></div>
  );
}
