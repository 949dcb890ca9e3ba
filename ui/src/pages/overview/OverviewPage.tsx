// The first page: figures, charts, and the list of what needs attention.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { request } from "../../api/client";
import type { Attention, Overview, ServiceLoad } from "../../api/console";
import { PageFrame } from "../../app/PageFrame";
import { useOverview } from "../../app/overview";
import { useSearchState } from "../../app/search-state";
import { asRange, RANGES, type SeriesAnswer } from "../../charts/series";
import { TimeChart } from "../../charts/TimeChart";
import { count, counted } from "../../format/number";
import { Icon, type IconName } from "../../parts/Icon";
import { Marked } from "../../parts/Marked";
import { Panel } from "../../parts/Panel";
import type { Family } from "../../parts/status";
import { Segments } from "../../parts/Tabs";
import { Ago } from "../../parts/Time";
import { useWords } from "../../words/language";
import { overviewWords } from "../../words/overview";
import { FirstSteps } from "./FirstSteps";
import "./overview.css";

export function OverviewPage() {
  const words = useWords(overviewWords);
  const [text, setRange] = useSearchState("range", "1h");
  const range = asRange(text);
  const overview = useOverview();
  // The checklist stays while its steps are done.
  const [wasEmpty, setWasEmpty] = useState(false);
  if (overview.data?.is_empty && !wasEmpty) setWasEmpty(true);
  return (
    <PageFrame title={words.title} actions={<Segments label={words.range} value={range} onChange={setRange} items={RANGES.map((id) => ({ id, label: id }))} />}>
      <Panel query={overview} lines={8}>
        {(data) => (
          <>
            {(data.is_empty || wasEmpty) && <FirstSteps overview={data} />}
            <Tiles data={data} />
            <Charts range={range} />
            <div className="twocols">
              <AttentionList items={data.attention} />
              <Services items={data.services} />
            </div>
          </>
        )}
      </Panel>
    </PageFrame>
  );
}

interface TileProps { to: string; search?: Record<string, string>; family: Family; icon: IconName; label: string; value: ReactNode; small: ReactNode; id: string }

function Tile({ to, search, family, icon, label, value, small, id }: TileProps) {
  return (
    <Link to={to} search={search as never} data-tile={id}>
      <span className="l"><span className={`${family} fg row`}><Icon name={icon} small /></span>{label}</span><b>{value}</b><small>{small}</small>
    </Link>
  );
}

function Tiles({ data }: { data: Overview }) {
  const words = useWords(overviewWords);
  const { tiles } = data;
  const { workers } = tiles;
  const trouble = [workers.stale > 0 && words.small.stale(count(workers.stale)), workers.draining > 0 && words.small.draining(count(workers.draining))].filter(Boolean).join(", ");
  return (
    <div className="tiles">
      <Tile id="running" to="/runs" search={{ query: "status:running" }} family="run" icon="running" label={words.tiles.running} value={counted(tiles.running)} small={words.small.runs} />
      <Tile id="queued" to="/queues" family="idle" icon="queued" label={words.tiles.queued} value={counted(tiles.queued)} small={words.small.jobs} />
      <Tile id="waiting" to="/runs" search={{ query: "status:waiting" }} family="wait" icon="waiting" label={words.tiles.waiting} value={counted(tiles.waiting)} small={tiles.approvals.count > 0 ? words.small.approvals(counted(tiles.approvals)) : words.small.waiting} />
      <Tile id="failed" to="/runs" search={{ query: "status:failed after:24h" }} family="fail" icon="x" label={words.tiles.failed} value={counted(tiles.failed_24h)} small={words.small.runs} />
      <Tile id="dead" to="/dead-letters" family="idle" icon="letters" label={words.tiles.deadLetters} value={counted(tiles.dead_letters)} small={tiles.dead_letters.count > 0 ? <span className="retry fg">{words.small.review}</span> : words.small.noDead} />
      <Tile id="workers" to="/workers" family="idle" icon="workers" label={words.tiles.workers} value={<>{count(workers.online)} <span className="unit">{words.tiles.online}</span></>} small={trouble ? <span className="retry fg">{trouble}</span> : workers.online > 0 ? words.small.allLive : words.small.noWorkers} />
    </div>
  );
}

function Charts({ range }: { range: string }) {
  const words = useWords(overviewWords).charts;
  const series = useQuery({
    queryKey: ["series", range], placeholderData: keepPreviousData, refetchInterval: 30_000,
    queryFn: ({ signal }) => request<SeriesAnswer>("GET", "/api/v1/series", { query: { range }, signal }),
  });
  return (
    <Panel query={series} lines={4}>
      {(data) => (
        <div className="charts">
          <TimeChart title={words.runs} data={data} unit="count" stacked sync="overview" lines={[{ column: "runs_completed", label: words.completed, tone: "ok" }, { column: "runs_failed", label: words.failed, tone: "fail" }, { column: "runs_canceled", label: words.canceled, tone: "idle" }]} />
          <TimeChart title={words.wait} data={data} unit="ms" sync="overview" lines={[{ column: "wait_ms_p50", label: words.p50, tone: "run" }, { column: "wait_ms_p95", label: words.p95, tone: "retry" }]} />
          <TimeChart title={words.duration} data={data} unit="ms" sync="overview" lines={[{ column: "run_ms_p50", label: words.p50, tone: "run" }, { column: "run_ms_p95", label: words.p95, tone: "retry" }]} />
        </div>
      )}
    </Panel>
  );
}

const LOOKS: Record<string, { family: Family; icon: IconName; to: (subject: string) => { to: string; params?: Record<string, string> } }> = {
  no_worker: { family: "fail", icon: "x", to: () => ({ to: "/workers" }) },
  missed_schedule: { family: "retry", icon: "schedules", to: () => ({ to: "/schedules" }) },
  dead_letters: { family: "fail", icon: "letters", to: () => ({ to: "/dead-letters" }) },
  lease_expired: { family: "retry", icon: "clock", to: () => ({ to: "/workers" }) },
  low_balance: { family: "retry", icon: "accounts", to: (account) => ({ to: "/accounts/$account", params: { account } }) },
  queue_paused: { family: "wait", icon: "paused", to: (queue) => ({ to: "/queues/$queue", params: { queue } }) },
  trouble: { family: "fail", icon: "warn", to: () => ({ to: "/settings" }) },
};

function AttentionList({ items }: { items: Attention[] }) {
  const words = useWords(overviewWords);
  return (
    <section className="frame" data-attention={items.length}>
      <header><h2>{words.attention.title}</h2>{items.length > 0 && <span className="faint">{items.length}</span>}</header>
      {items.length === 0 ? <p className="calm dim"><span className="ok fg"><Icon name="check" /></span>{words.attention.none}</p> : (
        <ul className="list">{items.map((item) => <AttentionItem key={`${item.kind} ${item.subject}`} item={item} />)}</ul>
      )}
    </section>
  );
}

function AttentionItem({ item }: { item: Attention }) {
  const words = useWords(overviewWords);
  const look = LOOKS[item.kind];
  const { to, params } = look?.to(item.subject) ?? { to: "/settings" };
  const own = words.attentionText[item.kind]?.(item.subject, count(item.count ?? 0));
  return (
    <li data-kind={item.kind}>
      <span className={`${look?.family ?? "retry"} fg row`}><Icon name={look?.icon ?? "warn"} /></span>
      <span className="grow"><span className="strong"><Marked text={own ?? item.text} /></span><br /><span className="small dim">{item.since && <Ago at={item.since} />}{item.since && item.command && " · "}{item.command ? <code>{item.command}</code> : own === undefined || item.since ? null : <Marked text={item.text} />}</span></span>
      <Link className="btn sm" to={to} params={params as never}>{words.attention.kinds[item.kind] ?? words.attention.kinds.trouble}</Link>
    </li>
  );
}

/** Demand against supply for each service: the answer to "why does nothing move". */
function Services({ items }: { items: ServiceLoad[] }) {
  const words = useWords(overviewWords).services;
  const shown = [...items].sort((a, b) => b.queued - a.queued || a.name.localeCompare(b.name)).slice(0, 8);
  const most = Math.max(1, ...shown.map((one) => one.queued));
  return (
    <section className="frame scroll">
      <header><h2>{words.title}</h2><span className="grow" /><Link className="link" to="/workers">{words.all}</Link></header>
      {shown.length === 0 ? <p className="calm dim">{words.none}</p> : (
        <table>
          <thead><tr><th>{words.service}</th><th className="num">{words.demand}</th><th className="num">{words.running}</th><th className="num">{words.workers}</th><th className="num">{words.capacity}</th></tr></thead>
          <tbody>
            {shown.map((one) => (
              <tr key={one.name}>
                <td className="cut strong">{one.name}</td>
                <td className="num"><span className={`bar ${one.n_workers === 0 && one.queued > 0 ? "fail" : "run"}`}><i style={{ width: `${(one.queued / most) * 100}%` }} /></span>&ensp;{count(one.queued)}</td>
                <td className="num">{count(one.running)}</td><td className="num">{one.n_workers === 0 && one.queued > 0 ? <span className="err">0</span> : count(one.n_workers)}</td><td className="num dim">{count(one.capacity)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
