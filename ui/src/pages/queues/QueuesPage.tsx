import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { call } from "../../api/client";
import type { QueueInfo } from "../../api/openapi";
import { PageFrame } from "../../app/PageFrame";
import { count } from "../../format/number";
import { duration } from "../../format/time";
import { useRefetch } from "../../live/use-refetch";
import { EmptyList } from "../../parts/Empty";
import { Icon } from "../../parts/Icon";
import { ListFoot, useList } from "../../parts/List";
import { Panel } from "../../parts/Panel";
import { useRowCursor } from "../../parts/rows";
import { StatusPill } from "../../parts/Status";
import { queuesWords } from "../../words/queues";
import { useWords } from "../../words/language";
import { depths, limitsText } from "./queue";
import { EnqueueDialog, PauseDialog } from "./QueueActions";

/** Waiting for longer than this is shown as trouble. */
const LATE_MS = 300_000;

export function QueuesPage() {
  const words = useWords(queuesWords);
  const list = useList<QueueInfo>(["queues", "list"], async (cursor, signal) => {
    const { queues, next } = await call("GET /api/v1/queues", { query: { cursor }, signal });
    return { items: queues, next };
  });
  useRefetch("queues", ["queues"]);
  const [isPushing, setPushing] = useState(false);
  return (
    <PageFrame title={words.title} actions={<button type="button" className="btn" onClick={() => setPushing(true)}><Icon name="plus" small />{words.push}</button>}>
      <Panel query={list}>
        {(queues) => queues.length === 0
          ? <EmptyList icon="queues" title={words.none} text={words.noneText} command="windlass queue push pictures thumbnail --payload '{&quot;file&quot;: &quot;cat.png&quot;}'" />
          : <><QueueTable queues={queues} /><ListFoot list={list} shown={queues.length} /></>}
      </Panel>
      {isPushing && <EnqueueDialog onClose={() => setPushing(false)} />}
    </PageFrame>
  );
}

function QueueTable({ queues }: { queues: QueueInfo[] }) {
  const words = useWords(queuesWords);
  const head = words.head;
  const navigate = useNavigate();
  const [pausing, setPausing] = useState<QueueInfo>();
  const open = (n: number) => { const queue = queues[n]; if (queue) void navigate({ to: "/queues/$queue", params: { queue: queue.name } }); };
  const [at, setAt] = useRowCursor({ count: queues.length, open });
  return (
    <div className="frame"><div className="scroll">
      <table>
        <thead><tr>
          <th>{head.queue}</th><th className="num">{head.ready}</th><th className="num">{head.later}</th><th className="num">{head.running}</th><th className="num">{head.dead}</th>
          <th className="num">{head.oldest}</th><th className="num">{head.created}</th><th className="num">{head.done}</th><th className="num">{head.wait50}</th><th className="num">{head.wait95}</th>
          <th>{head.limits}</th><th><span className="hidden-text">{words.pause}</span></th>
        </tr></thead>
        <tbody>
          {queues.map((queue, n) => (
            <tr key={queue.name} data-row={n} className={`link-row${n === at ? " cursor" : ""}`} onClick={(event) => { if (!(event.target as Element).closest("a, button, dialog")) { setAt(n); open(n); } }}>
              <QueueCells queue={queue} />
              <td className="num"><button type="button" className="btn sm" onClick={() => setPausing(queue)}>{queue.paused ? words.resume : words.pause}</button></td>
            </tr>
          ))}
        </tbody>
      </table>
      {pausing && <PauseDialog queue={pausing} onClose={() => setPausing(undefined)} />}
    </div></div>
  );
}

function QueueCells({ queue }: { queue: QueueInfo }) {
  const words = useWords(queuesWords);
  const { ready, later, running } = depths(queue);
  const minute = queue.stats.last_minute;
  const span = (ms: number | null | undefined) => (ms === null || ms === undefined ? <span className="faint">–</span> : <span className={ms > LATE_MS ? "err" : undefined}>{duration(ms)}</span>);
  const limits = limitsText(queue.limits, words);
  return (
    <>
      <td className="cut"><Link to="/queues/$queue" params={{ queue: queue.name }}>{queue.name}</Link>{queue.paused && <> <StatusPill status="paused" /></>}</td>
      <td className="num">{count(ready)}</td><td className="num dim">{count(later)}</td><td className="num dim">{count(running)}</td>
      <td className="num">{queue.dead_letters > 0 ? <Link className="err" to="/dead-letters" search={{ queue: queue.name } as never}>{count(queue.dead_letters)}</Link> : <span className="faint">0</span>}</td>
      <td className="num">{ready > 0 ? span(queue.oldest_age_ms) : <span className="faint">–</span>}</td>
      <td className="num dim">{minute.per_second.created.toFixed(1)}</td><td className="num dim">{minute.per_second.succeeded.toFixed(1)}</td>
      <td className="num dim">{span(minute.wait_ms.p50)}</td><td className="num dim">{span(minute.wait_ms.p95)}</td>
      <td className="dim cut">{limits || <span className="faint">–</span>}</td>
    </>
  );
}
