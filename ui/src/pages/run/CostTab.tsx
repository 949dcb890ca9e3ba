import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { call } from "../../api/client";
import type { RunView } from "../../api/console";
import { money } from "../../format/number";
import { EmptyList } from "../../parts/Empty";
import { Panel } from "../../parts/Panel";
import { Clock } from "../../parts/Time";
import { useWords } from "../../words/language";
import { accountsWords } from "../../words/accounts";
import { runWords } from "../../words/run";

/** Cost of the run, and its rows in the account's ledger. */
export function CostTab({ view }: { view: RunView }) {
  const words = useWords(runWords).cost;
  const { run } = view;
  const account = run.account ?? "";
  const ledger = useQuery({
    queryKey: ["ledger", account, run.id, view.seq], enabled: account !== "", placeholderData: keepPreviousData,
    queryFn: ({ signal }) => call("GET /api/v1/accounts/{id}/ledger", { path: { id: account }, query: { run: run.id, order: "oldest", limit: 500 }, signal }),
  });
  const { cost } = run;
  const { kinds } = useWords(accountsWords);
  return (
    <div className="eventstab">
      <dl className="facts figures">
        <div><dt>{words.estimated}</dt><dd>{money(cost.estimated)}</dd></div>
        <div><dt>{words.actual}</dt><dd>{money(cost.actual)}</dd></div>
        {cost.own && <div><dt>{words.own}</dt><dd>{money(cost.own.estimated)}</dd></div>}
        {cost.own && <div><dt>{words.ownActual}</dt><dd>{money(cost.own.actual)}</dd></div>}
        {view.budget != null && <div><dt>{words.budget}</dt><dd>{money(view.budget)}</dd></div>}
        {account && <div><dt>{words.account}</dt><dd><Link className="link" to="/accounts/$account" params={{ account }}>{account.slice(0, 60)}</Link></dd></div>}
      </dl>
      {!account ? <EmptyList icon="accounts" title={words.none} text="" command={`windlass run start ${view.run.flow.slice(0, 60)} --account acme`} /> : (
        <section className="frame scroll">
          <header><h2>{words.ledger}</h2></header>
          <Panel query={ledger}>
            {({ items }) => items.length === 0 ? <EmptyList icon="accounts" title={words.noRows} text="" /> : (
              <table>
                <thead><tr><th>{words.time}</th><th>{words.kind}</th><th>{words.node}</th><th className="num">{words.amount}</th><th className="num">{words.balance}</th></tr></thead>
                <tbody>{items.map((row) => <tr key={row.seq}><td className="dim"><Clock at={row.at} /></td><td title={row.kind}>{kinds[row.kind] ?? row.kind}</td><td className="mono">{row.node}</td><td className="num">{money(row.amount)}</td><td className="num dim">{money(row.balance_after)}</td></tr>)}</tbody>
              </table>
            )}
          </Panel>
        </section>
      )}
    </div>
  );
}
