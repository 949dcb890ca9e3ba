import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useDeferredValue } from "react";
import { call } from "../../api/client";
import type { NextRuns } from "../../api/openapi";
import { useSettings } from "../../format/settings";
import { absolute } from "../../format/time";
import { Panel } from "../../parts/Panel";
import { Until } from "../../parts/Time";
import { useWords } from "../../words/language";
import { schedulesWords } from "../../words/schedules";

const COUNT = 10;

/** The next ten times of a schedule. */
export function NextTimes({ id, version, isOff }: { id: string; version: string; isOff: boolean }) {
  const words = useWords(schedulesWords).next;
  const next = useQuery({ queryKey: ["schedules", id, "next", version], queryFn: ({ signal }) => call("GET /api/v1/schedules/{id}/next", { path: { id }, query: { count: COUNT }, signal }), placeholderData: keepPreviousData });
  return <Panel query={next}>{(runs) => <>{isOff && <p className="small dim">{words.off}</p>}<TimeTable runs={runs} /></>}</Panel>;
}

/** The next ten times of an expression that is being typed. */
export function PreviewTimes({ cron, zone, dst }: { cron: string; zone: string; dst: string }) {
  const words = useWords(schedulesWords).next;
  const asked = useDeferredValue(JSON.stringify({ cron_expr: cron.trim(), timezone: zone.trim() || undefined, dst, count: COUNT }));
  const preview = useQuery({
    queryKey: ["schedules", "preview", asked], enabled: cron.trim() !== "", placeholderData: keepPreviousData, retry: false,
    queryFn: ({ signal }) => call("POST /api/v1/schedules/preview", { body: JSON.parse(asked), signal }),
  });
  if (cron.trim() === "") return <p className="small faint">{words.preview}</p>;
  if (preview.isError) return <Panel query={{ ...preview, data: undefined }}>{() => null}</Panel>;
  return <Panel query={preview} lines={5}>{(runs) => <TimeTable runs={runs} />}</Panel>;
}

const offsetOf = (local: string) => /([+-]\d\d:\d\d|Z)$/.exec(local)?.[1] ?? "";

function TimeTable({ runs }: { runs: NextRuns }) {
  const words = useWords(schedulesWords).next;
  const { zone } = useSettings();
  if (runs.next_runs.length === 0) return <p className="dim">{words.never}</p>;
  return (
    <div className="frame"><div className="scroll" tabIndex={0}>
      <table className="times">
        <thead><tr><th>{words.own} · {runs.timezone}</th><th>{zone === "utc" ? words.utc : words.viewer}</th><th className="num">{words.inTime}</th></tr></thead>
        <tbody>
          {runs.next_runs.map((at, n) => {
            const local = runs.local[n] ?? at;
            const before = n === 0 ? undefined : runs.local[n - 1];
            const isChange = before !== undefined && offsetOf(before) !== offsetOf(local);
            return (
              <tr key={at}>
                <td className="mono">{local.slice(0, 19).replace("T", " ")} <span className="faint">{offsetOf(local)}</span>{isChange && <> <span className="tag">{words.change}</span></>}</td>
                <td className="mono dim">{absolute(Date.parse(at), zone).slice(0, 19)}</td><td className="num dim"><Until until={at} /></td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div></div>
  );
}
