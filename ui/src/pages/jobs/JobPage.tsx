import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { call } from "../../api/client";
import type { JobAttempt, JobDetail } from "../../api/openapi";
import { PageFrame } from "../../app/PageFrame";
import { shortId, tail } from "../../format/number";
import { cli, curl } from "../../format/shell";
import { duration } from "../../format/time";
import { useRefetch } from "../../live/use-refetch";
import { ActionDialog } from "../../parts/ActionDialog";
import { CopyButton } from "../../parts/Copy";
import { Json } from "../../parts/Json";
import { ListFoot, useList } from "../../parts/List";
import { Panel } from "../../parts/Panel";
import { StatusPill, StatusWord } from "../../parts/Status";
import { Ago, Clock, Elapsed } from "../../parts/Time";
import { toast } from "../../parts/Toasts";
import { commonWords } from "../../words/common";
import { useWords } from "../../words/language";
import { queuesWords } from "../../words/queues";

const statusOf = (job: JobDetail) => (job.suspended ? "suspended" : job.is_dead_letter ? "dead" : job.status);
const isOpen = (job: JobDetail) => ["queued", "running", "retrying"].includes(job.status);

export function JobPage() {
  const { job: id } = useParams({ strict: false }) as { job: string };
  const words = useWords(queuesWords);
  const common = useWords(commonWords);
  const job = useQuery({ queryKey: ["jobs", id], queryFn: ({ signal }) => call("GET /api/v1/jobs/{id}", { path: { id }, signal }) });
  useRefetch("queues", ["jobs", id]);
  return (
    <PageFrame title={job.data?.name ?? common.nav.jobs} suffix={tail(id)} parent={{ to: "/queues", label: words.title }} actions={job.data && <JobButtons job={job.data} />}>
      <Panel query={job}>{(detail) => <JobBody job={detail} />}</Panel>
    </PageFrame>
  );
}

function JobButtons({ job }: { job: JobDetail }) {
  const words = useWords(queuesWords).detail;
  const client = useQueryClient();
  const [dialog, setDialog] = useState<"cancel" | "retry">();
  if (job.run) return null;
  const done = (text: string) => { toast(text); void client.invalidateQueries({ queryKey: ["jobs", job.id] }); };
  const canRetry = job.status !== "completed" && job.status !== "running";
  return (
    <>
      {canRetry && <button type="button" className="btn" onClick={() => setDialog("retry")}>{isOpen(job) ? words.retryNow : words.retry}</button>}
      {isOpen(job) && <button type="button" className="btn danger" onClick={() => setDialog("cancel")}>{words.cancel}</button>}
      {dialog === "cancel" && (
        <ActionDialog
          title={words.cancelTitle(shortId(job.id))} confirm={words.cancel} danger onClose={() => setDialog(undefined)} onDone={() => done(words.canceled)}
          cli={cli("job", "cancel", job.id)} curl={curl("POST", `/api/v1/jobs/${job.id}/cancel`)}
          run={() => call("POST /api/v1/jobs/{id}/cancel", { path: { id: job.id } })}
        ><p>{words.cancelText}</p></ActionDialog>
      )}
      {dialog === "retry" && (
        <ActionDialog
          title={words.retryTitle(shortId(job.id))} confirm={words.retry} onClose={() => setDialog(undefined)} onDone={() => done(words.retried)}
          cli={cli("job", "retry", job.id)} curl={curl("POST", `/api/v1/jobs/${job.id}/retry`)}
          run={() => call("POST /api/v1/jobs/{id}/retry", { path: { id: job.id } })}
        ><p>{words.retryText}</p></ActionDialog>
      )}
    </>
  );
}

function JobBody({ job }: { job: JobDetail }) {
  const words = useWords(queuesWords);
  const detail = words.detail;
  const facts: [string, React.ReactNode][] = [
    [words.head.queue, <Link className="link" to="/queues/$queue" params={{ queue: job.queue }}>{job.queue}</Link>],
    [words.job.attempt, words.job.of(job.attempt, job.retry_max + 1)], [words.job.priority, job.priority],
    [words.job.created, <Ago at={job.created_at} />], [words.job.updated, <Ago at={job.updated_at} />],
    ...(job.due_at ? [[words.job.due, <Ago at={job.due_at} />] as [string, React.ReactNode]] : []),
    ...(job.run ? [[detail.run, <><Link className="link" to="/runs/$run" params={{ run: job.run }}>{shortId(job.run)}</Link> <code>{job.node}</code> <span className="faint small">{detail.ofRun}</span></>] as [string, React.ReactNode]] : []),
    ...(job.schedule ? [[detail.schedule, <Link className="link" to="/schedules/$schedule" params={{ schedule: job.schedule }}>{shortId(job.schedule)}</Link>] as [string, React.ReactNode]] : []),
    ...([[detail.account, job.account], [detail.dedup, job.dedup_key], [detail.limitKey, job.limit_key], [detail.timeout, job.timeout_ms ? duration(job.timeout_ms) : undefined], [detail.discarded, job.discarded]] as [string, string | undefined][]).filter(([, value]) => value),
  ];
  return (
    <>
      <div className="head">
        <h1 className="text">{job.name}</h1><StatusPill status={statusOf(job)} />
        <span className="mono dim">{shortId(job.id)} <CopyButton text={job.id} /></span>
        {job.is_dead_letter && <Link className="link" to="/dead-letters" search={{ queue: job.queue } as never}>{detail.toLetters}</Link>}
      </div>
      <dl className="facts two">{facts.map(([label, value]) => <FactPair key={label} label={label} value={value} />)}</dl>
      {job.error && <div className="errbox"><div className="row"><span>{job.error.kind}</span></div><p>{job.error.message}</p></div>}
      <section className="stack"><h2>{detail.attempts}</h2><Attempts id={job.id} /></section>
      <div className="cols">
        <section className="stack"><h2>{detail.payload}</h2><Json value={job.payload} label={detail.payload} /></section>
        {job.latest_attempt.result !== undefined && job.latest_attempt.result !== null && <section className="stack"><h2>{detail.result}</h2><Json value={job.latest_attempt.result} label={detail.result} /></section>}
      </div>
    </>
  );
}

function FactPair({ label, value }: { label: string; value: React.ReactNode }) {
  return <><dt>{label}</dt><dd>{value}</dd></>;
}

/** Every attempt of a job, oldest first. The dead letters show it too. */
export function Attempts({ id }: { id: string }) {
  const words = useWords(queuesWords);
  const list = useList<JobAttempt>(["jobs", id, "attempts"], (cursor, signal) => call("GET /api/v1/jobs/{id}/attempts", { path: { id }, query: { cursor, limit: 50 }, signal }));
  return (
    <Panel query={list} lines={2}>
      {(attempts) => (
        <>
          <div className="frame"><div className="scroll" tabIndex={0}>
            <table>
              <thead><tr><th className="num">{words.job.attempt}</th><th>{words.job.status}</th><th>{words.detail.worker}</th><th>{words.detail.started}</th><th className="num">{words.detail.took}</th><th>{words.job.error}</th></tr></thead>
              <tbody>
                {attempts.map((one) => (
                  <tr key={one.attempt}>
                    <td className="num">{one.attempt}</td><td><StatusWord status={one.status} /></td><td className="cut">{one.worker_id ?? "–"}</td>
                    <td><Clock at={one.started_at ?? one.created_at} /></td><td className="num">{one.started_at ? <Elapsed from={one.started_at} to={one.finished_at} /> : "–"}</td>
                    <td className="err clip" title={one.error?.message}>{one.error?.message ?? ""}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div></div>
          {list.hasNextPage && <ListFoot list={list} shown={attempts.length} />}
        </>
      )}
    </Panel>
  );
}
