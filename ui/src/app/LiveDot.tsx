import { useTicking } from "../format/now";
import { relative } from "../format/time";
import { lastBeat, type LiveStatus, pause, useLiveStatus } from "../live/live";
import type { Family } from "../parts/status";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";

const FAMILIES: Record<LiveStatus, Family> = { live: "ok", connecting: "retry", polling: "retry", paused: "wait" };

/** Live, reconnecting or paused, with the time of the last update. A click pauses. */
export function LiveDot() {
  const words = useWords(commonWords);
  const status = useLiveStatus();
  const age = useTicking((now) => (lastBeat() === 0 ? "" : relative(lastBeat(), Math.max(now, lastBeat()), words.time)));
  const title = status === "paused" ? words.live.toResume : words.live.toPause;
  return (
    <button type="button" className={`live ${FAMILIES[status]}`} data-live={status} title={title} onClick={() => pause(status !== "paused")}>
      <span role="status">{words.live[status]}</span>{age && <span aria-hidden="true">· {words.live.updated(age)}</span>}
    </button>
  );
}
