import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { request } from "../../api/client";
import type { Overview } from "../../api/console";
import { CopyButton } from "../../parts/Copy";
import { ErrorPanel } from "../../parts/Errors";
import { Icon } from "../../parts/Icon";
import { Marked } from "../../parts/Marked";
import { toast } from "../../parts/Toasts";
import { commonWords } from "../../words/common";
import { useWords } from "../../words/language";
import { overviewWords } from "../../words/overview";

/** All built-in functions: the examples use most of them. */
const WORKER = "windlass worker --services all";

/** The first run, as its example starts it. */
const FIRST = { flow: "graph/approval", params: '{"text": "dear all"}' };

/** The checklist of an empty store. */
export function FirstSteps({ overview }: { overview: Overview }) {
  const words = useWords(overviewWords).first;
  const copy = useWords(commonWords).action.copy;
  const client = useQueryClient();
  const load = useMutation({
    mutationFn: () => request<{ published: unknown[] }>("POST", "/api/v1/examples", { body: {} }),
    onSuccess: ({ published }) => { toast(words.loaded(published.length)); void client.invalidateQueries(); },
  });
  return (
    <section className="frame first">
      <header><h2>{words.title}</h2><span className="faint">{words.text}</span></header>
      <ol className="list">
        <Step n={1} isDone={overview.tiles.workers.online > 0} title={words.worker} text={words.workerText}><span className="row"><code className="code">{WORKER}</code><CopyButton text={WORKER} label={copy} /></span></Step>
        <Step n={2} isDone={load.isSuccess} title={words.examples} text={words.examplesText}><button type="button" className="btn primary" disabled={load.isPending} onClick={() => load.mutate()}>{words.load}</button></Step>
        <Step n={3} title={words.run} text={words.runText}><Link className="btn" to="/start" search={FIRST as never}>{words.start}</Link></Step>
        <Step n={4} title={words.open} text={words.openText}><Link className="btn" to="/runs">{words.openRuns}</Link></Step>
      </ol>
      {load.isError && <div style={{ padding: 12 }}><ErrorPanel error={load.error} onRetry={() => load.mutate()} /></div>}
    </section>
  );
}

function Step({ n, isDone, title, text, children }: { n: number; isDone?: boolean; title: string; text: string; children: ReactNode }) {
  const words = useWords(overviewWords).first;
  return (
    <li>
      <span className={`stepno${isDone ? " ok fg" : ""}`}>{isDone ? <><Icon name="check" small /><span className="hidden-text">{words.done}</span></> : n}</span>
      <span className="grow"><span className="strong">{title}</span><br /><span className="small dim"><Marked text={text} /></span></span>
      {children}
    </li>
  );
}
