// Cron expressions in words, where they are plain enough; and the form of a schedule.
import type { NewSchedule, ScheduleInfo } from "../../api/openapi";
import type { schedulesWords } from "../../words/schedules";

type CronWords = (typeof schedulesWords)["en"]["cron"];

const NAMED: Record<string, string> = { "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *" };
const NUMBER = /^\d+$/;
const EVERY = /^\*\/(\d+)$/;

/** "weekdays 09:00"; `undefined` where the expression itself is clearer. */
export function cronText(expression: string, words: CronWords): string | undefined {
  const fields = (NAMED[expression.trim()] ?? expression).trim().split(/\s+/);
  const [second, ...rest] = fields.length === 6 ? fields : ["0", ...fields];
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = rest;
  if (rest.length !== 5 || month !== "*") return undefined;
  const isDaily = day === "*" && weekday === "*";
  const seconds = EVERY.exec(second ?? "")?.[1];
  if (seconds) return isDaily && minute === "*" && hour === "*" ? words.everySeconds(seconds) : undefined;
  if (second !== "0") return undefined;
  if (isDaily && hour === "*") {
    const minutes = EVERY.exec(minute)?.[1];
    if (minutes) return words.everyMinutes(minutes);
    if (minute === "*") return words.everyMinute;
    return NUMBER.test(minute) ? words.hourly(minute.padStart(2, "0")) : undefined;
  }
  if (!NUMBER.test(minute) || !NUMBER.test(hour)) return undefined;
  const time = `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  if (isDaily) return words.daily(time);
  if (day === "*" && /^(1-5|mon-fri)$/i.test(weekday)) return words.weekdays(time);
  if (day === "*" && /^[0-7]$/.test(weekday)) return words.weekly(words.days[Number(weekday) % 7] ?? weekday, time);
  return weekday === "*" && NUMBER.test(day) ? words.monthly(day, time) : undefined;
}

/** The fields of the form, as texts. */
export interface ScheduleForm {
  name: string; kind: "flow" | "job"; flow: string; version: string; params: string; queue: string; job: string; payload: string;
  cron: string; zone: string; overlap: string; catchup: string; dst: string; windowHours: string; account: string;
}

export function formOf(schedule: ScheduleInfo | undefined, zone: string): ScheduleForm {
  const json = (value: unknown) => (value === undefined || value === null ? "" : JSON.stringify(value, null, 2));
  return {
    name: schedule?.name ?? "", kind: schedule?.task ? "job" : "flow", flow: schedule?.flow ?? "", version: schedule?.version ? String(schedule.version) : "",
    params: json(schedule?.params), queue: schedule?.task?.queue_name ?? "", job: schedule?.task?.name ?? "", payload: json(schedule?.task?.payload),
    cron: schedule?.cron_expr ?? "", zone: schedule?.timezone ?? zone, overlap: schedule?.overlap ?? "skip", catchup: schedule?.catchup ?? "none", dst: schedule?.dst ?? "shift",
    windowHours: String((schedule?.window_ms ?? 86_400_000) / 3_600_000), account: schedule?.account ?? "",
  };
}

/** The body of a form. `before` is the schedule that is edited: its job keeps the fields that the form does not show. */
export function bodyOf(form: ScheduleForm, before?: ScheduleInfo): NewSchedule {
  const json = (text: string): unknown => (text.trim() === "" ? undefined : JSON.parse(text));
  const target = form.kind === "flow"
    ? { flow: form.flow, params: (json(form.params) ?? {}) as Record<string, unknown>, ...(form.version && { version: Number(form.version) }) }
    : { task: { ...(before?.task && withoutTime(before.task)), name: form.job, queue_name: form.queue, ...(form.payload.trim() !== "" && { payload: json(form.payload) }) } };
  return {
    name: form.name || undefined, cron_expr: form.cron, timezone: form.zone || undefined, overlap: form.overlap, catchup: form.catchup, dst: form.dst,
    window_ms: Math.round(Number(form.windowHours) * 3_600_000), ...(form.account && { account: form.account }), ...target,
  } as NewSchedule;
}

function withoutTime<T extends { run_at?: unknown }>({ run_at: _, ...rest }: T) {
  return rest;
}
