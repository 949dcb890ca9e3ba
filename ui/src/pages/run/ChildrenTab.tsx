import { Link } from "@tanstack/react-router";
import type { RunView } from "../../api/console";
import { count, money, shortId } from "../../format/number";
import { EmptyList } from "../../parts/Empty";
import { StatusWord } from "../../parts/Status";
import { Ago, Elapsed } from "../../parts/Time";
import { useWords } from "../../words/language";
import { runsWords } from "../../words/runs";
import { runWords } from "../../words/run";

/** The runs that this run has started. */
export function ChildrenTab({ view }: { view: RunView }) {
  const words = useWords(runWords);
  const columns = useWords(runsWords).columns;
  if (view.children.length === 0) return <EmptyList icon="runs" title={words.tabs.children} text={words.noChildren} />;
  return (
    <div className="eventstab">
      <div className="frame scroll">
        <table>
          <thead><tr><th>{columns.status}</th><th>{columns.flow}</th><th>{columns.run}</th><th>{columns.node}</th><th>{columns.started}</th><th className="num">{columns.duration}</th><th className="num">{columns.cost}</th></tr></thead>
          <tbody>
            {view.children.map((run) => (
              <tr key={run.id}>
                <td><StatusWord status={run.status} /></td>
                <td><Link className="strong" to="/runs/$run" params={{ run: run.id }}>{run.flow.slice(0, 80)}</Link> <span className="ver">@{run.version}</span></td>
                <td className="mono id"><Link to="/runs/$run" params={{ run: run.id }}>{shortId(run.id)}</Link></td>
                <td className="dim cut">{run.parent?.node}</td>
                <td className="dim"><Ago at={run.created_at} /></td>
                <td className="num"><Elapsed from={run.created_at} to={run.ended_at} /></td>
                <td className="num">{money(run.cost.actual || run.cost.estimated)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {view.more_children && <p className="small faint">{count(view.children.length)}+ · <Link className="link" to="/runs" search={{ query: `parent:${view.run.id}` } as never}>{words.tabs.children}</Link></p>}
    </div>
  );
}
