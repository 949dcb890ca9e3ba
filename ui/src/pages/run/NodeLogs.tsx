import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../api/client";
import { ErrorPanel } from "../../parts/Errors";
import { Clock } from "../../parts/Time";
import { commonWords } from "../../words/common";
import { useWords } from "../../words/language";
import { runWords } from "../../words/run";

const LINES = 200;

/** The log lines of a node; they are read when they are opened. */
export function NodeLogs({ run, node, seq }: { run: string; node: string; seq: number }) {
  const words = useWords(runWords).node;
  const common = useWords(commonWords).empty;
  const [isOpen, setOpen] = useState(false);
  const logs = useQuery({
    queryKey: ["logs", run, node, seq], enabled: isOpen, placeholderData: keepPreviousData,
    queryFn: ({ signal }) => call("GET /api/v1/runs/{id}/logs", { path: { id: run }, query: { node, limit: LINES }, signal }),
  });
  return (
    <details className="logs" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="sec">{words.logs}{logs.data && <span className="faint">{logs.data.items.length}{logs.data.next ? "+" : ""}</span>}</summary>
      {logs.isError && <ErrorPanel error={logs.error} onRetry={() => void logs.refetch()} />}
      {logs.isPending && isOpen && <p className="faint small">{common.loading}…</p>}
      {logs.data?.items.length === 0 && <p className="faint small">{words.noLogs}</p>}
      <ol>
        {logs.data?.items.map((line, n) => (
          <li key={n} className={line.level === "error" ? "fail" : line.level === "warn" ? "retry" : undefined}>
            <span className="faint"><Clock at={line.at} /></span> <span className={line.level === "info" ? undefined : "fg"}>{line.message.slice(0, 4000)}</span>
            {line.data !== undefined && line.data !== null && <code className="data">{JSON.stringify(line.data).slice(0, 1000)}</code>}
          </li>
        ))}
      </ol>
    </details>
  );
}
