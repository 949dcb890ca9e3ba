import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Fragment, useState } from "react";
import { call } from "../../api/client";
import type { ServiceLoad } from "../../api/console";
import type { WorkerInfo } from "../../api/openapi";
import { PageFrame } from "../../app/PageFrame";
import { useOverview } from "../../app/overview";
import { useSearchParams } from "../../app/search-state";
import { count, shortId } from "../../format/number";
import { cli, curl } from "../../format/shell";
import { useRefetch } from "../../live/use-refetch";
import { ActionDialog } from "../../parts/ActionDialog";
import { EmptyList, EmptyMatch } from "../../parts/Empty";
import { Icon } from "../../parts/Icon";
import { ListFoot, useList } from "../../parts/List";
import { Panel } from "../../parts/Panel";
import { useRowCursor } from "../../parts/rows";
import { StatusWord } from "../../parts/Status";
import { Ago, Elapsed } from "../../parts/Time";
import { toast } from "../../parts/Toasts";
import { useWords } from "../../words/language";
import { workersWords } from "../../words/workers";
import { byTrouble, demandShare, VERDICTS, verdictOf } from "./verdict";
import "./workers.css";

/** Services that are shown before the viewer asks for all; all with trouble or work are among them. */
const SERVICES_SHOWN = 8;

export function WorkersPage() {
  const words = useWords(workersWords);
  const overview = useOverview();
  const list = useList<WorkerInfo>(["workers"], async (cursor, signal) => {
    const { workers, next } = await call("GET /api/v1/workers", { query: { cursor }, signal });
    return { items: workers, next };
  });
  useRefetch("workers", ["workers"]);
  return (
    <PageFrame title={words.title}>
      <Panel query={overview}>{({ services }) => <Demand services={services} />}</Panel>
      <Panel query={list}>
        {(workers) => workers.length === 0
          ? <EmptyList icon="workers" title={words.none} text={words.noneText} command="windlass worker --services all" />
          : <><WorkerTable workers={workers} /><ListFoot list={list} shown={workers.length} /></>}
      </Panel>
    </PageFrame>
  );
}

function Demand({ services }: { services: ServiceLoad[] }) {
  const words = useWords(workersWords);
  const [isWhole, setWhole] = useState(false);
  const sorted = byTrouble(services);
  const shown = isWhole ? sorted : sorted.slice(0, Math.max(SERVICES_SHOWN, sorted.filter((one) => one.queued > 0).length));
  const [most, widest] = [Math.max(...services.map(({ queued }) => queued), 1), Math.max(...services.map(({ capacity, running }) => Math.max(capacity, running)), 1)];
  return (
    <section className="frame demand">
      <header><span className="strong">{words.demand}</span><span className="dim wide">{words.demandNote}</span><span className="grow" /><span className="small dim wide legend">{words.legend.queued} <i className="busy" />{words.legend.busy} <i className="free" />{words.legend.free}</span></header>
      {services.length === 0 ? <p className="dim" style={{ padding: "var(--s3)" }}>{words.noServices}</p> : (
        <div className="scroll" tabIndex={0}><table>
          <thead><tr><th>{words.head.service}</th><th className="num">{words.head.queued}</th><th className="num wide">{words.head.demand}</th><th className="wide">{words.head.supply}</th><th>{words.head.busy}</th><th>{words.head.verdict}</th></tr></thead>
          <tbody>{shown.map((service) => <ServiceRow key={service.name} service={service} most={most} widest={widest} />)}</tbody>
        </table></div>
      )}
      {shown.length < sorted.length && <div className="foot" style={{ padding: "4px var(--s3)" }}><button type="button" className="link" onClick={() => setWhole(true)}>{words.more(sorted.length - shown.length)}</button></div>}
    </section>
  );
}

function ServiceRow({ service, most, widest }: { service: ServiceLoad; most: number; widest: number }) {
  const words = useWords(workersWords);
  const verdict = verdictOf(service);
  const { family, icon } = VERDICTS[verdict];
  const free = service.capacity - service.running;
  const text = {
    no_worker: words.verdict.no_worker, short: words.verdict.short(service.queued), keeps_up: words.verdict.keeps_up,
    idle: service.capacity > 0 ? words.verdict.idle(free) : words.verdict.idleOpen, none: words.verdict.none,
  }[verdict];
  const slots = Math.max(service.capacity, service.running);
  return (
    <tr data-service={service.name}>
      <td className="cut">{service.name}</td><td className="num">{count(service.queued)}</td>
      <td className="wide side-left"><span className={`flow ${["no_worker", "short"].includes(verdict) ? family : "idle"}`} style={{ width: `${demandShare(service.queued, most) * 100}%` }} /></td>
      <td className="wide side-right">{service.n_workers === 0
        ? <span className="nothing" />
        : <span className="slots" style={{ width: `${Math.max(4, (slots / widest) * 100)}%` }}><i style={{ width: `${slots === 0 ? 0 : (service.running / slots) * 100}%` }} /></span>}</td>
      <td className={verdict === "no_worker" ? "err" : "dim"}>{service.n_workers === 0 ? "0" : service.capacity > 0 ? words.busyOf(service.running, service.capacity) : `${service.running} · ${words.noLimit}`}</td>
      <td><span className={`bare ${family}`}><Icon name={icon} /><span>{text}</span></span></td>
    </tr>
  );
}

const ORDER = ["online", "draining", "stale", "offline"];

function WorkerTable({ workers }: { workers: WorkerInfo[] }) {
  const words = useWords(workersWords);
  const [search, change] = useSearchParams();
  const [draining, setDraining] = useState<WorkerInfo>();
  const needle = (search.q ?? "").toLowerCase();
  const shown = workers
    .filter((worker) => [worker.name, worker.id, ...worker.services, ...worker.queues].some((text) => text.toLowerCase().includes(needle)))
    .sort((a, b) => Number(ORDER.indexOf(a.status) > 1) - Number(ORDER.indexOf(b.status) > 1) || a.name.localeCompare(b.name) || a.id.localeCompare(b.id));
  const turn = (worker: WorkerInfo | undefined) => worker && change({ open: search.open === worker.id ? undefined : worker.id });
  const [at, setAt] = useRowCursor({ count: shown.length, open: (n) => turn(shown[n]) });
  return (
    <section className="frame">
      <header><h2>{words.title}</h2><span className="dim">{workers.length}</span><span className="grow" />
        <label className="input filter"><Icon name="search" small /><input data-search aria-label={words.filter} placeholder={words.filter} value={search.q ?? ""} onChange={(event) => change({ q: event.target.value || undefined })} /></label>
      </header>
      {shown.length === 0 ? <EmptyMatch filter={search.q ?? ""} onClear={() => change({ q: undefined })} /> : (
        <div className="scroll"><table>
          <thead><tr><th>{words.head.worker}</th><th>{words.head.state}</th><th>{words.head.type}</th><th>{words.head.services}</th><th>{words.head.load}</th><th className="num">{words.head.heartbeat}</th><th className="num">{words.head.jobs}</th><th><span className="hidden-text">{words.drain}</span></th></tr></thead>
          <tbody>
            {shown.map((worker, n) => (
              <Fragment key={worker.id}>
                <tr data-row={n} data-worker={worker.id} className={`link-row${n === at ? " cursor" : ""}`} onClick={(event) => { if (!(event.target as Element).closest("a, button")) { setAt(n); turn(worker); } }}>
                  <WorkerCells worker={worker} isOpen={search.open === worker.id} onTurn={() => turn(worker)} />
                  <td className="num"><button type="button" className="btn sm" onClick={() => setDraining(worker)}>{worker.is_draining ? words.undrain : words.drain}</button></td>
                </tr>
                {search.open === worker.id && <tr><td colSpan={8}><WorkerDetail worker={worker} /></td></tr>}
              </Fragment>
            ))}
          </tbody>
        </table></div>
      )}
      {draining && <DrainDialog worker={draining} onClose={() => setDraining(undefined)} />}
    </section>
  );
}

function WorkerCells({ worker, isOpen, onTurn }: { worker: WorkerInfo; isOpen: boolean; onTurn: () => void }) {
  const words = useWords(workersWords);
  const serves = [...worker.services, ...worker.queues];
  const share = worker.capacity > 0 ? Math.min(1, worker.load / worker.capacity) : 0;
  const type = worker.type ?? "pull";
  return (
    <>
      <td className="cut"><button type="button" className="row" aria-expanded={isOpen} title={words.showTasks} onClick={onTurn}><Icon name={isOpen ? "down" : "right"} small /><span className="cut">{worker.name || worker.id}</span></button></td>
      <td><StatusWord status={worker.is_draining && worker.status === "online" ? "draining" : worker.status} /></td><td className="dim">{words.type[type] ?? type}</td>
      <td className="dim clip" title={serves.join(", ").slice(0, 1000)}>{serves.slice(0, 12).join(", ")}{serves.length > 12 && ` ${words.more(serves.length - 12)}`}</td>
      <td><span className={`bar ${share >= 1 ? "retry" : "run"}`}><i style={{ width: `${share * 100}%` }} /></span> {worker.capacity > 0 ? `${worker.load}/${worker.capacity}` : worker.load}</td>
      <td className={`num ${worker.status === "online" ? "dim" : "err"}`}><Ago at={worker.heartbeat_at} /></td><td className="num dim">{worker.tasks?.length ?? 0}</td>
    </>
  );
}

function WorkerDetail({ worker }: { worker: WorkerInfo }) {
  const words = useWords(workersWords);
  const tasks = worker.tasks ?? [];
  return (
    <div className="stack worker-detail">
      <p className="small dim text"><span className="mono">{worker.id}</span>{worker.url && <> · <span className="mono">{worker.url}</span></>}</p>
      <p className="small text">{[...worker.services, ...worker.queues].join(", ")}</p>
      {tasks.length === 0 ? <p className="small faint">{words.idle}</p> : (
        <table><thead><tr><th>{words.job}</th><th>{words.queue}</th><th className="num">{words.attempt}</th><th className="num">{words.since}</th></tr></thead>
          <tbody>{tasks.map((task) => (
            <tr key={task.task_id}><td><Link className="link" to="/jobs/$job" params={{ job: task.task_id }}>{task.name}</Link> <span className="mono faint">{shortId(task.task_id)}</span></td><td>{task.queue_name}</td><td className="num">{task.attempt}</td><td className="num"><Elapsed from={task.since} /></td></tr>
          ))}</tbody>
        </table>
      )}
    </div>
  );
}

function DrainDialog({ worker, onClose }: { worker: WorkerInfo; onClose: () => void }) {
  const words = useWords(workersWords);
  const client = useQueryClient();
  const isBack = worker.is_draining === true;
  const verb = isBack ? "undrain" : "drain";
  const name = worker.name || worker.id;
  return (
    <ActionDialog
      title={isBack ? words.undrainTitle(name) : words.drainTitle(name)} confirm={isBack ? words.undrain : words.drain}
      cli={cli("worker", verb, worker.id)} curl={curl("POST", `/api/v1/workers/${encodeURIComponent(worker.id)}/${verb}`)}
      run={() => call(isBack ? "POST /api/v1/workers/{id}/undrain" : "POST /api/v1/workers/{id}/drain", { path: { id: worker.id } })}
      onDone={() => { toast(isBack ? words.undrained(name) : words.drained(name), isBack ? "ok" : "retry", isBack ? "check" : "download"); void client.invalidateQueries({ queryKey: ["workers"] }); }}
      onClose={onClose}
    ><p>{isBack ? words.undrainText : words.drainText(worker.tasks?.length ?? 0)}</p></ActionDialog>
  );
}
