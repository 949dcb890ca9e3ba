// The columns of the list of runs.
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { RunSummary } from "../../api/openapi";
import { count, money, shortId } from "../../format/number";
import { StatusWord } from "../../parts/Status";
import { isEnded } from "../../parts/status";
import { Ago, Elapsed } from "../../parts/Time";
import type { runsWords } from "../../words/runs";
import { short } from "../run/why";

export type ColumnId = Exclude<keyof (typeof runsWords)["en"]["columns"], "title" | "progress">;

interface Column {
  id: ColumnId;
  /** Classes of its cells. */
  name?: string;
  cell: (run: RunSummary, trigger: (name: string) => string) => ReactNode;
}

/** The last node, or the one that failed with the kind of its error. */
function node(run: RunSummary): ReactNode {
  if (run.status === "failed" && run.error) {
    const status = /\bHTTP \d{3}\b/.exec(run.error.message)?.[0];
    return <span className="err" title={short(run.error.message, 300)}>{[run.error.node ?? run.node, status ?? run.error.kind].filter(Boolean).join(" · ").slice(0, 80)}</span>;
  }
  return isEnded(run.status) ? <span className="faint">–</span> : run.node?.slice(0, 80);
}

export const COLUMNS: Column[] = [
  { id: "status", cell: (run) => <StatusWord status={run.status} /> },
  { id: "flow", name: "cut", cell: (run) => <><Link className="strong" to="/runs/$run" params={{ run: run.id }}>{run.flow.slice(0, 80)}</Link> <span className="ver">@{run.version}</span></> },
  { id: "run", name: "mono id", cell: (run) => <Link to="/runs/$run" params={{ run: run.id }}>{shortId(run.id)}</Link> },
  { id: "node", name: "cut dim", cell: node },
  { id: "attempts", name: "num dim", cell: (run) => count(run.step_count) },
  { id: "started", name: "dim", cell: (run) => <Ago at={run.created_at} /> },
  { id: "duration", name: "num", cell: (run) => <Elapsed from={run.created_at} to={isEnded(run.status) ? (run.ended_at ?? run.updated_at) : undefined} /> },
  { id: "account", name: "cut dim", cell: (run) => run.account && <Link to="/accounts/$account" params={{ account: run.account }}>{run.account.slice(0, 40)}</Link> },
  { id: "cost", name: "num", cell: (run) => (run.cost.estimated || run.cost.actual ? money(isEnded(run.status) ? run.cost.actual : run.cost.estimated) : <span className="faint">–</span>) },
  { id: "trigger", name: "dim", cell: (run, trigger) => trigger(run.parent ? "parent" : run.schedule_id ? "schedule" : "api") },
  { id: "labels", name: "cut", cell: (run) => Object.entries(run.labels ?? {}).slice(0, 3).map(([key, value]) => <span key={key} className="tag">{`${key}=${value}`.slice(0, 40)}</span>) },
];

/** Columns that are hidden until they are chosen. */
export const HIDDEN_FIRST: ColumnId[] = ["labels"];
