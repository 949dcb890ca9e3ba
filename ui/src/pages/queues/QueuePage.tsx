import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { call, request } from "../../api/client";
import type { JobSummary, QueueInfo } from "../../api/openapi";
import { PageFrame } from "../../app/PageFrame";
import { useSearchState } from "../../app/search-state";
import { asRange, RANGES, type SeriesAnswer } from "../../charts/series";
import { TimeChart } from "../../charts/TimeChart";
import { count, shortId } from "../../format/number";
import { duration } from "../../format/time";
import { useRefetch } from "../../live/use-refetch";
import { EmptyMatch } from "../../parts/Empty";
import { Icon } from "../../parts/Icon";
import { ListFoot, NewRows, useHeldRows, useList } from "../../parts/List";
import { Panel } from "../../parts/Panel";
import { useRowCursor } from "../../parts/rows";
import { StatusPill, StatusWord } from "../../parts/Status";
import { Segments, Tabs } from "../../parts/Tabs";
import { Ago } from "../../parts/Time";
import { commonWords } from "../../words/common";
import { useWords } from "../../words/language";
import { queuesWords } from "../../words/queues";
import { depths, limitsText } from "./queue";
import { EnqueueDialog, LimitsDialog, PauseDialog } from "./QueueActions";

/** The figures of the charts change once a minute. */
const SERIES_MS = 30_000;

export function QueuePage() {
  const { queue: name } = useParams({ strict: false }) as { queue: string };
  const words = useWords(queuesWords);
  const queue = useQuery({ queryKey: ["queues", name], queryFn: ({ signal }) => call("GET /api/v1/queues/{name}", { path: { name }, signal }) });
  useRefetch("queues", ["queues"]);
  return (
    <PageFrame title={name} parent={{ to: "/queues", label: words.title }} actions={queue.data && <QueueButtons queue={queue.data} />}>
      <Panel query={queue}>{(info) => <QueueHead queue={info} />}</Panel>
      <QueueCharts name={name} />
      <QueueJobs name={name} />
    </PageFrame>
  );
}

function QueueButtons({ queue }: { queue: QueueInfo }) {
  const words = useWords(queuesWords);
  const [dialog, setDialog] = useState<"pause" | "limits" | "push">();
  const close = () => setDialog(undefined);
  return (
    <>
      <button type="button" className="btn wide" onClick={() => setDialog("push")}><Icon name="plus" small />{words.push}</button>
      <button type="button" className="btn wide" onClick={() => setDialog("limits")}>{words.edit}</button>
      <button type="button" className="btn" onClick={() => setDialog("pause")}><Icon name={queue.paused ? "play" : "paused"} small />{queue.paused ? words.resume : words.pause}</button>
      {dialog === "pause" && <PauseDialog queue={queue} onClose={close} />}
      {dialog === "limits" && <LimitsDialog queue={queue} onClose={close} />}
      {dialog === "push" && <EnqueueDialog queue={queue.name} onClose={close} />}
    </>
  );
}

function QueueHead({ queue }: { queue: QueueInfo }) {
  const words = useWords(queuesWords);
  const { ready, later, running } = depths(queue);
  const [minute, hour] = [queue.stats.last_minute, queue.stats.last_hour];
  const pair = (of: { p50?: number | null; p95?: number | null }) => `${of.p50 == null ? "–" : duration(of.p50)} / ${of.p95 == null ? "–" : duration(of.p95)}`;
  return (
    <>
      <div className="head"><h1 className="text">{queue.name}</h1>{queue.paused && <StatusPill status="paused" />}</div>
      <dl className="facts two">
        <dt>{words.facts.openJobs}</dt>
        <dd>{words.head.ready} {count(ready)} · {words.head.later} {count(later)} · {words.head.running} {count(running)}{queue.dead_letters > 0 && <> · <Link className="link" to="/dead-letters" search={{ queue: queue.name } as never}>{words.head.dead} {count(queue.dead_letters)}</Link></>}</dd>
        <dt>{words.head.limits}</dt><dd>{limitsText(queue.limits, words) || words.noLimit}</dd>
        <dt>{words.facts.waited}</dt><dd>{pair(minute.wait_ms)}</dd>
        <dt>{words.facts.workedOff}</dt><dd>{pair(minute.work_ms)}</dd>
        <dt>{words.facts.lastHour}</dt><dd>{words.facts.hour(hour.created, hour.succeeded, hour.failed)}</dd>
        <dt>{words.head.oldest}</dt><dd>{ready > 0 && queue.oldest_age_ms != null ? duration(queue.oldest_age_ms) : "–"}</dd>
      </dl>
    </>
  );
}

function QueueCharts({ name }: { name: string }) {
  const words = useWords(queuesWords).charts;
  const [range, setRange] = useSearchState("range", "1h");
  const series = useQuery({
    queryKey: ["series", name, range],
    queryFn: ({ signal }) => request<SeriesAnswer>("GET", "/api/v1/series", { query: { range: asRange(range), queue: name }, signal }),
    refetchInterval: SERIES_MS,
    placeholderData: keepPreviousData,
  });
  const sync = `queue ${name}`;
  return (
    <section className="stack">
      <div className="row"><span className="grow" /><Segments label={words.range} value={asRange(range)} onChange={setRange} items={RANGES.map((id) => ({ id, label: id }))} /></div>
      <Panel query={series}>
        {(data) => (
          <div className="charts">
            <TimeChart title={words.depth} data={data} unit="count" sync={sync} lines={[{ column: "depth", label: words.depthLine, tone: "idle" }]} />
            <TimeChart title={words.throughput} data={data} unit="perSecond" sync={sync} lines={[{ column: "jobs_created", label: words.jobsIn, tone: "run" }, { column: "jobs_succeeded", label: words.done, tone: "ok" }, { column: "jobs_failed", label: words.failed, tone: "fail" }]} />
            <TimeChart title={words.wait} data={data} unit="ms" sync={sync} lines={[{ column: "wait_ms_p50", label: words.wait50, tone: "idle" }, { column: "wait_ms_p95", label: words.wait95, tone: "retry" }, { column: "work_ms_p95", label: words.work95, tone: "run", dash: true }]} />
          </div>
        )}
      </Panel>
    </section>
  );
}

const STATES = ["open", "running", "delayed", "retrying", "failed", "completed", "canceled"];

function QueueJobs({ name }: { name: string }) {
  const words = useWords(queuesWords);
  const [state, setState] = useSearchState("tab", "open");
  const status = STATES.includes(state) ? state : "open";
  const key = ["queues", name, "jobs", status];
  const list = useList<JobSummary>(key, (cursor, signal) => call("GET /api/v1/jobs", { query: { queue: name, status, cursor, limit: 50 }, signal }));
  const { rows, waiting, show } = useHeldRows(list.data, (job) => job.id, key.join());
  return (
    <section className="stack">
      <Tabs label={words.jobsLabel} current={status} items={STATES.map((id) => ({ id, label: words.tabs[id] ?? id }))} />
      <Panel query={list}>
        {() => rows.length === 0
          ? <EmptyMatch filter={`queue:${name} status:${status}`} onClear={() => setState(undefined)} />
          : <div className="holds-new"><NewRows waiting={waiting} onShow={show} /><JobTable jobs={rows} /><ListFoot list={list} shown={rows.length} /></div>}
      </Panel>
    </section>
  );
}

function JobTable({ jobs }: { jobs: JobSummary[] }) {
  const words = useWords(queuesWords).job;
  const common = useWords(commonWords);
  const navigate = useNavigate();
  const open = (n: number) => { const job = jobs[n]; if (job) void navigate({ to: "/jobs/$job", params: { job: job.id } }); };
  const [at, setAt] = useRowCursor({ count: jobs.length, open });
  return (
    <div className="frame"><div className="scroll">
      <table aria-label={common.nav.jobs}>
        <thead><tr><th>{words.job}</th><th>{words.status}</th><th className="num">{words.attempt}</th><th className="num">{words.priority}</th><th>{words.due}</th><th>{words.created}</th><th>{words.worker}</th><th>{words.error}</th></tr></thead>
        <tbody>
          {jobs.map((job, n) => (
            <tr key={job.id} data-row={n} className={`link-row${n === at ? " cursor" : ""}`} onClick={(event) => { if (!(event.target as Element).closest("a, button")) { setAt(n); open(n); } }}>
              <td className="cut"><Link to="/jobs/$job" params={{ job: job.id }}>{job.name}</Link> <span className="mono faint">{shortId(job.id)}</span></td>
              <td><StatusWord status={job.suspended ? "suspended" : job.is_dead_letter ? "dead" : job.status} /></td>
              <td className="num">{words.of(job.attempt, job.retry_max + 1)}</td><td className="num dim">{job.priority}</td>
              <td className="dim">{job.due_at ? <Ago at={job.due_at} /> : "–"}</td><td className="dim"><Ago at={job.created_at} /></td>
              <td className="dim cut">{job.worker_id ?? "–"}</td><td className="err clip">{job.error?.message ?? ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div></div>
  );
}
