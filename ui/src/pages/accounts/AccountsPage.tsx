import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { call } from "../../api/client";
import type { AccountInfo, PriceInfo } from "../../api/openapi";
import { PageFrame } from "../../app/PageFrame";
import { money } from "../../format/number";
import { EmptyList } from "../../parts/Empty";
import { Icon } from "../../parts/Icon";
import { ListFoot, useList } from "../../parts/List";
import { Panel } from "../../parts/Panel";
import { useRowCursor } from "../../parts/rows";
import { Ago } from "../../parts/Time";
import { accountsWords } from "../../words/accounts";
import { useWords } from "../../words/language";
import { OpenDialog, PriceDialog, RemovePriceDialog } from "./AccountDialogs";

export function AccountsPage() {
  const words = useWords(accountsWords);
  const list = useList<AccountInfo>(["accounts", "list"], (cursor, signal) => call("GET /api/v1/accounts", { query: { cursor }, signal }));
  const [dialog, setDialog] = useState<"open" | "price">();
  return (
    <PageFrame title={words.title} actions={<button type="button" className="btn" onClick={() => setDialog("open")}><Icon name="plus" small />{words.open}</button>}>
      <Panel query={list}>
        {(accounts) => accounts.length === 0
          ? <EmptyList icon="accounts" title={words.none} text={words.noneText} command="windlass account open acme && windlass account deposit acme 100000 --key first" />
          : <><AccountTable accounts={accounts} /><ListFoot list={list} shown={accounts.length} /></>}
      </Panel>
      <section className="stack">
        <div className="row"><h2 className="grow">{words.prices}</h2><button type="button" className="btn sm" onClick={() => setDialog("price")}>{words.setPrice}</button></div>
        <Prices />
      </section>
      {dialog === "open" && <OpenDialog onClose={() => setDialog(undefined)} />}
      {dialog === "price" && <PriceDialog onClose={() => setDialog(undefined)} />}
    </PageFrame>
  );
}

function AccountTable({ accounts }: { accounts: AccountInfo[] }) {
  const { head } = useWords(accountsWords);
  const navigate = useNavigate();
  const open = (n: number) => { const account = accounts[n]; if (account) void navigate({ to: "/accounts/$account", params: { account: account.id } }); };
  const [at, setAt] = useRowCursor({ count: accounts.length, open });
  return (
    <div className="frame"><div className="scroll"><table>
      <thead><tr><th>{head.account}</th><th>{head.name}</th><th className="num">{head.balance}</th><th className="num">{head.held}</th><th>{head.created}</th></tr></thead>
      <tbody>{accounts.map((account, n) => (
        <tr key={account.id} data-row={n} className={`link-row${n === at ? " cursor" : ""}`} onClick={(event) => { if (!(event.target as Element).closest("a")) { setAt(n); open(n); } }}>
          <td className="cut"><Link to="/accounts/$account" params={{ account: account.id }}>{account.id}</Link></td><td className="cut dim">{account.name}</td>
          <td className={`num${account.balance < 0 ? " err" : ""}`}>{money(account.balance)}</td><td className="num dim">{money(account.held)}</td><td className="dim"><Ago at={account.created_at} /></td>
        </tr>
      ))}</tbody>
    </table></div></div>
  );
}

function Prices() {
  const words = useWords(accountsWords);
  const list = useList<PriceInfo>(["prices"], (cursor, signal) => call("GET /api/v1/prices", { query: { cursor }, signal }));
  const [removing, setRemoving] = useState<string>();
  return (
    <Panel query={list} lines={2}>
      {(prices) => prices.length === 0 ? <p className="dim">{words.noPrices}</p> : (
        <div className="frame"><div className="scroll"><table>
          <thead><tr><th>{words.head.service}</th><th className="num">{words.head.unit}</th><th>{words.head.units}</th><th className="num">{words.head.least}</th><th>{words.head.changed}</th><th><span className="hidden-text">{words.removePrice}</span></th></tr></thead>
          <tbody>{prices.map((price) => (
            <tr key={price.service}><td className="cut">{price.service}</td><td className="num">{money(price.unit_price)}</td><td className="cut"><code>{typeof price.units === "string" ? price.units : JSON.stringify(price.units)}</code></td><td className="num">{price.min_unit}</td><td className="dim"><Ago at={price.updated_at} /></td><td className="num"><button type="button" className="btn sm quiet danger" onClick={() => setRemoving(price.service)}>{words.removePrice}</button></td></tr>
          ))}</tbody>
        </table></div>{removing && <RemovePriceDialog service={removing} onClose={() => setRemoving(undefined)} />}</div>
      )}
    </Panel>
  );
}
