// Figures and texts of a queue.
import type { QueueInfo, QueueLimitSettings, RateLimit } from "../../api/openapi";
import type { queuesWords } from "../../words/queues";

type QueueWords = (typeof queuesWords)["en"];

/** Jobs that workers can claim, jobs that wait for their time or a retry, and jobs that workers hold. */
export function depths({ depth }: Pick<QueueInfo, "depth">): { ready: number; later: number; running: number } {
  const of = (...states: string[]) => states.reduce((sum, state) => sum + (depth[state] ?? 0), 0);
  return { ready: of("queued"), later: of("pending", "retrying", "suspended"), running: of("running") };
}

const UNITS: [number, string][] = [[1_000, "s"], [60_000, "m"], [3_600_000, "h"]];

/** "10/s", "3 per 2500 ms". */
export function rateText({ count, per_ms }: RateLimit): string {
  const unit = UNITS.find(([ms]) => ms === per_ms);
  return unit ? `${count} / ${unit[1]}` : `${count} / ${per_ms} ms`;
}

export function limitsText(limits: QueueLimitSettings, words: QueueWords): string {
  const parts = [
    limits.concurrency ? words.atOnce(limits.concurrency) : undefined,
    limits.rate ? rateText(limits.rate) : undefined,
    limits.key_concurrency ? words.perKey(words.atOnce(limits.key_concurrency)) : undefined,
    limits.key_rate ? words.perKey(rateText(limits.key_rate)) : undefined,
    limits.fair && !limits.key_concurrency && !limits.key_rate ? words.fair : undefined,
  ];
  return parts.filter((part) => part !== undefined).join(", ");
}

/** The fields of the form of limits: texts, because a field may be empty. */
export interface LimitForm {
  concurrency: string; count: string; perMs: string; burst: string;
  keyConcurrency: string; keyCount: string; keyPerMs: string; keyBurst: string; fair: boolean;
}

export function formOf(limits: QueueLimitSettings): LimitForm {
  const text = (n: number | null | undefined) => (n === null || n === undefined ? "" : String(n));
  return {
    concurrency: text(limits.concurrency), count: text(limits.rate?.count), perMs: text(limits.rate?.per_ms) || "1000", burst: text(limits.rate?.burst),
    keyConcurrency: text(limits.key_concurrency), keyCount: text(limits.key_rate?.count), keyPerMs: text(limits.key_rate?.per_ms) || "1000", keyBurst: text(limits.key_rate?.burst),
    fair: limits.fair === true,
  };
}

/** The limits of a form. The server checks the numbers: its answer names the wrong one. */
export function limitsOf(form: LimitForm): QueueLimitSettings {
  const number = (text: string) => (text.trim() === "" ? undefined : Number(text));
  const rate = (count: string, perMs: string, burst: string): RateLimit | undefined =>
    count.trim() === "" ? undefined : { count: Number(count), per_ms: Number(perMs), burst: number(burst) };
  return {
    concurrency: number(form.concurrency), rate: rate(form.count, form.perMs, form.burst), key_concurrency: number(form.keyConcurrency),
    key_rate: rate(form.keyCount, form.keyPerMs, form.keyBurst), fair: form.fair || undefined,
  };
}

/** The same limits as flags of `windlass queue limit`. */
export function limitFlags(form: LimitForm): string[] {
  const per: Record<string, string> = { "1000": "s", "60000": "m", "3600000": "h" };
  const flag = (name: string, value: string) => [name, value.trim() === "" ? "none" : value];
  const rate = (count: string, perMs: string) => (count.trim() === "" ? "" : `${count}/${per[perMs] ?? `${perMs}ms`}`);
  return [
    ...flag("--concurrency", form.concurrency), ...flag("--rate", rate(form.count, form.perMs)), ...(form.burst ? ["--burst", form.burst] : []),
    ...flag("--key-concurrency", form.keyConcurrency), ...flag("--key-rate", rate(form.keyCount, form.keyPerMs)), ...(form.keyBurst ? ["--key-burst", form.keyBurst] : []),
    form.fair ? "--fair" : "--no-fair",
  ];
}
