import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { call } from "../../api/client";
import { shortId } from "../../format/number";
import { useTopic } from "../../live/live";
import { Icon } from "../../parts/Icon";
import { Json } from "../../parts/Json";
import { StatusPill } from "../../parts/Status";
import { isEnded } from "../../parts/status";
import { flowsWords } from "../../words/flows";
import { useWords } from "../../words/language";

/** A run of the draft; its states lie over the graph of the editor. */
export function useTestRun() {
  const [id, setId] = useState<string>();
  const client = useQueryClient();
  const key = ["test-run", id];
  const answer = useQuery({ queryKey: key, enabled: id !== undefined, queryFn: ({ signal }) => call("GET /api/v1/runs/{id}", { path: { id: id ?? "" }, signal }) });
  const run = id ? answer.data : undefined;
  useTopic(id && !(run && isEnded(run.status)) ? `run:${id}` : undefined, () => void client.invalidateQueries({ queryKey: key }));
  return { id, run, error: answer.error, watch: setId, close: () => setId(undefined) };
}

export function TestRun({ test }: { test: ReturnType<typeof useTestRun> }) {
  const words = useWords(flowsWords).editor;
  const { id, run } = test;
  if (!id) return null;
  return (
    <section className="test-run" data-test-run={run?.status}>
      <div className="row">
        <span className="strong">{words.testStarted}</span>{run && <StatusPill status={run.status} />}<Link className="link mono" to="/runs/$run" params={{ run: id }}>{shortId(id)}</Link>
        <span className="grow" /><button type="button" className="btn sm icon quiet" aria-label={words.closeTest} onClick={test.close}><Icon name="x" small /></button>
      </div>
      {run?.error && <p className="err text">{run.error.message}</p>}
      {run && isEnded(run.status) && <Json value={run.result ?? run.shared} />}
    </section>
  );
}
