// Bulk actions: the list, and the progress of one.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { request } from "../../api/client";
import type { BulkInfo } from "../../api/console";
import { PageFrame } from "../../app/PageFrame";
import { count, shortId, tail } from "../../format/number";
import { useTopic } from "../../live/live";
import { ActionDialog } from "../../parts/ActionDialog";
import { EmptyList } from "../../parts/Empty";
import { ListFoot, type Page, useList } from "../../parts/List";
import { ErrorPanel } from "../../parts/Errors";
import { Panel, Skeleton } from "../../parts/Panel";
import { StatusPill, StatusWord } from "../../parts/Status";
import { Ago, Elapsed } from "../../parts/Time";
import { toast } from "../../parts/Toasts";
import { bulkWords } from "../../words/bulk";
import { commonWords } from "../../words/common";
import { useWords } from "../../words/language";
import { runsWords } from "../../words/runs";
import "../runs/runs.css";

function useActionName() {
  const names = useWords(runsWords).dialog.names;
  return (action: string) => names[action] ?? action;
}

export function BulkPage() {
  const words = useWords(bulkWords);
  const nav = useWords(commonWords).nav;
  const name = useActionName();
  const list = useList<BulkInfo>(["bulk"], (cursor, signal) => request<Page<BulkInfo>>("GET", "/api/v1/bulk", { query: { cursor, limit: 50 }, signal }));
  return (
    <PageFrame title={words.title} parent={{ to: "/runs", label: nav.runs }}>
      <h1>{words.title}</h1>
      {list.isError && <ErrorPanel error={list.error} onRetry={() => void list.refetch()} />}
      {!list.data ? !list.isError && <Skeleton /> : list.data.length === 0 ? <div className="frame"><EmptyList icon="runs" title={words.empty.title} text={words.empty.text} command="windlass bulk retry -q 'status:failed after:1h'" /></div> : (
        <>
          <div className="frame scroll">
            <table>
              <thead><tr><th>{words.columns.status}</th><th>{words.columns.action}</th><th>{words.columns.query}</th><th className="num">{words.columns.matched}</th><th className="num">{words.columns.failed}</th><th>{words.columns.actor}</th><th>{words.columns.started}</th></tr></thead>
              <tbody>
                {list.data.map((bulk) => (
                  <tr key={bulk.id}>
                    <td><StatusWord status={bulk.status} /></td>
                    <td><Link className="strong" to="/bulk/$bulk" params={{ bulk: bulk.id }}>{name(bulk.action)}</Link></td>
                    <td className="cut"><code>{bulk.query ?? words.selected}</code></td>
                    <td className="num">{count(bulk.matched)}</td><td className="num">{count(bulk.failed)}</td><td className="dim">{bulk.actor}</td><td className="dim"><Ago at={bulk.created_at} /></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <ListFoot list={list} shown={list.data.length} />
        </>
      )}
    </PageFrame>
  );
}

function useBulk(id: string) {
  const client = useQueryClient();
  const key = ["bulk-one", id];
  const query = useQuery({ queryKey: key, queryFn: ({ signal }) => request<BulkInfo>("GET", `/api/v1/bulk/${encodeURIComponent(id)}`, { signal }) });
  // Only an id that the server knows: a topic that it cannot read would end the stream of all tabs.
  useTopic(query.data && `bulk:${query.data.id}`, ({ type, data }) => {
    if (type === "bulk") client.setQueryData(key, data as BulkInfo);
    else void client.invalidateQueries({ queryKey: key });
  });
  return query;
}

export function BulkDetailPage() {
  const { bulk: id } = useParams({ strict: false }) as { bulk: string };
  const words = useWords(bulkWords);
  const name = useActionName();
  const query = useBulk(id);
  const [isStopping, setStopping] = useState(false);
  const title = query.data ? words.one(name(query.data.action), count(query.data.matched)) : words.title;
  return (
    <PageFrame title={title} suffix={<span className="mono">{tail(id)}</span>} parent={{ to: "/bulk", label: words.title }}>
      <Panel query={query}>
        {(bulk) => (
          <>
            <div className="head">
              <h1>{title}</h1><span role="status"><StatusPill status={bulk.status} /></span><span className="dim"><Elapsed from={bulk.created_at} to={bulk.ended_at} /></span><span className="grow" />
              {bulk.status === "running" && <button type="button" className="btn" onClick={() => setStopping(true)}>{words.stop}</button>}
            </div>
            <Progress bulk={bulk} />
            <dl className="facts">
              <dt>{words.query}</dt><dd>{bulk.query == null ? words.selected : <Link className="link" to="/runs" search={{ query: bulk.query } as never}><code>{bulk.query || words.all}</code></Link>}</dd>
              {bulk.reason && <><dt>{words.reason}</dt><dd>{bulk.reason}</dd></>}
              {bulk.actor && <><dt>{words.actor}</dt><dd>{bulk.actor}</dd></>}
              <dt>{words.started}</dt><dd><Ago at={bulk.created_at} /></dd>
            </dl>
            <Failures bulk={bulk} />
            {isStopping && <StopDialog id={bulk.id} onClose={() => setStopping(false)} />}
          </>
        )}
      </Panel>
    </PageFrame>
  );
}

function Progress({ bulk }: { bulk: BulkInfo }) {
  const words = useWords(bulkWords);
  const share = (n: number) => `${bulk.matched > 0 ? (n / bulk.matched) * 100 : 100}%`;
  return (
    <div className="stack" style={{ gap: 6 }}>
      <div className="progress" role="progressbar" aria-label={words.title} aria-valuemin={0} aria-valuemax={bulk.matched} aria-valuenow={bulk.done}>
        <i className="ok" style={{ width: share(bulk.succeeded) }} /><i className="fail" style={{ width: share(bulk.failed) }} />
      </div>
      <div className="row small dim wrap">
        <span className="strong" data-done={bulk.done}>{words.of(count(bulk.done), count(bulk.matched))}</span><span>{words.succeeded(count(bulk.succeeded))}</span>
        {bulk.failed > 0 && <span className="err">{words.failed(count(bulk.failed))}</span>}{bulk.status === "running" && <span>{words.left(count(bulk.matched - bulk.done))}</span>}
      </div>
    </div>
  );
}

function Failures({ bulk }: { bulk: BulkInfo }) {
  const words = useWords(bulkWords);
  const failures = bulk.failures ?? [];
  if (failures.length === 0) return bulk.status === "running" ? null : <p className="faint">{words.noFailures}</p>;
  return (
    <section className="frame scroll">
      <header><h2>{words.failures}</h2><span className="faint">{count(bulk.failed)}</span></header>
      <table>
        <thead><tr><th>{words.run}</th><th>{words.code}</th><th>{words.message}</th></tr></thead>
        <tbody>{failures.map((one) => <tr key={one.id}><td className="mono id"><Link className="link" to="/runs/$run" params={{ run: one.id }}>{shortId(one.id)}</Link></td><td><code>{one.code}</code></td><td className="text">{one.message}</td></tr>)}</tbody>
      </table>
      {bulk.more_failures && <p className="small faint" style={{ padding: 8 }}>{words.moreFailures}</p>}
    </section>
  );
}

function StopDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const words = useWords(bulkWords);
  const client = useQueryClient();
  return (
    <ActionDialog
      title={words.stopTitle} confirm={words.stop.replace("…", "")} keep={words.keep} danger onClose={onClose} cli={`windlass bulk stop ${id}`} run={() => request("POST", `/api/v1/bulk/${id}/cancel`)}
      onDone={() => { toast(words.stopped); void client.invalidateQueries({ queryKey: ["bulk-one", id] }); }}
    >
      <p className="dim">{words.stopText}</p>
    </ActionDialog>
  );
}
