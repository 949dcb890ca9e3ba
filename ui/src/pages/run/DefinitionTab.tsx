import { useQuery } from "@tanstack/react-query";
import { call } from "../../api/client";
import type { RunView } from "../../api/console";
import { CopyAs } from "../../parts/Copy";
import { ErrorPanel } from "../../parts/Errors";
import { JsonText } from "../../parts/Json";
import { Panel } from "../../parts/Panel";
import { SHOWN_MAX } from "../../parts/json";
import { commonWords } from "../../words/common";
import { useWords } from "../../words/language";
import { runWords } from "../../words/run";
import { readable } from "../editor/draft";
import { Changes } from "./StateTab";

/** The version that the run executes, and its difference to the latest one. */
export function DefinitionTab({ view }: { view: RunView }) {
  const words = useWords(runWords).definition;
  const copy = useWords(commonWords).action.copy;
  const { flow_id: flow, version: number } = view.run;
  const version = useQuery({ queryKey: ["version", flow, number], staleTime: Number.POSITIVE_INFINITY, queryFn: ({ signal }) => call("GET /api/v1/flows/{flow}/versions/{version}", { path: { flow, version: number }, signal }) });
  const latest = useQuery({ queryKey: ["flow", flow], queryFn: ({ signal }) => call("GET /api/v1/flows/{flow}", { path: { flow }, signal }) });
  const newest = latest.data?.latest_version;
  const isOld = newest !== undefined && newest !== number;
  const diff = useQuery({ queryKey: ["flow-diff", flow, number, newest], enabled: isOld, queryFn: ({ signal }) => call("GET /api/v1/flows/{flow}/diff", { path: { flow }, query: { from: number, to: newest }, signal }) });
  return (
    <div className="eventstab">
      <p className="dim">{words.ran(number)} {newest !== undefined && (isOld ? words.latest(newest) : words.isLatest)}</p>
      {latest.isError && <ErrorPanel error={latest.error} onRetry={() => void latest.refetch()} />}
      {isOld && <section className="stack"><h2>{words.changes}</h2><Panel query={diff}>{(data) => <Changes changes={data.changes} />}</Panel></section>}
      <Panel query={version} lines={10}>
        {(data) => {
          const text = readable(data.text || JSON.stringify(data.definition)).slice(0, SHOWN_MAX);
          return <section className="stack"><div className="sec">{words.text}<span className="push"><CopyAs text={text}>{copy}</CopyAs></span></div><div className="tall"><JsonText text={text} label={words.text} /></div></section>;
        }}
      </Panel>
    </div>
  );
}
