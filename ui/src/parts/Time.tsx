import { useTicking } from "../format/now";
import { useSettings } from "../format/settings";
import { absolute, clock, duration, ms, relative } from "../format/time";
import { commonWords } from "../words/common";
import { useWords } from "../words/language";

/** A time of the API relative to now, with the absolute time on hover. */
export function Ago({ at }: { at: string | null | undefined }) {
  const words = useWords(commonWords).time;
  const { zone } = useSettings();
  const time = ms(at);
  const text = useTicking((now) => (time === undefined ? "–" : relative(time, now, words)));
  if (time === undefined) return <span className="faint">–</span>;
  return <time dateTime={at ?? undefined} title={absolute(time, zone)}>{text}</time>;
}

/** A time of the API as a clock shows it. */
export function Clock({ at }: { at: string | null | undefined }) {
  const { zone } = useSettings();
  const time = ms(at);
  if (time === undefined) return <span className="faint">–</span>;
  return <time dateTime={at ?? undefined} title={absolute(time, zone)}>{clock(time, Date.now(), zone)}</time>;
}

/** The time from `from` to `to`; without `to` it goes on. */
export function Elapsed({ from, to }: { from: string | null | undefined; to?: string | null }) {
  const [start, end] = [ms(from), ms(to)];
  const text = useTicking((now) => (start === undefined ? "–" : duration(Math.max(0, (end ?? now) - start))));
  return <span className={start === undefined ? "faint" : undefined}>{text}</span>;
}

/** The time until `until`, counted down. */
export function Until({ until }: { until: string | null | undefined }) {
  const end = ms(until);
  const text = useTicking((now) => (end === undefined ? "–" : duration(Math.max(0, end - now))));
  return <time dateTime={until ?? undefined}>{text}</time>;
}
