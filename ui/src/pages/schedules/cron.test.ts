import { describe, expect, it } from "vitest";
import { schedulesWords } from "../../words/schedules";
import { bodyOf, cronText, formOf } from "./cron";

const words = schedulesWords.en.cron;

describe("a cron expression in words", () => {
  const cases: [string, string | undefined][] = [
    ["30 7 * * 1-5", "weekdays 07:30"], ["*/10 * * * * *", "every 10 seconds"], ["*/5 * * * *", "every 5 minutes"], ["@daily", "every day 00:00"], ["0 * * * *", "every hour at :00"],
    ["15 3 1 * *", "day 1 of each month 03:15"], ["0 9 * * 0", "Sundays 09:00"], ["0 9 * * 7", "Sundays 09:00"], ["1-5 9 * * *", undefined], ["0 9 1 1 *", undefined], ["0 9 1 * 1", undefined], ["not cron", undefined],
  ];
  it.each(cases)("%s", (expression, text) => expect(cronText(expression, words)).toBe(text));
});

describe("the form of a schedule", () => {
  it("gives the body of a run", () => {
    expect(bodyOf({ ...formOf(undefined, "Asia/Shanghai"), flow: "f", cron: "@daily", params: '{"a": 1}' })).toMatchObject({ flow: "f", params: { a: 1 }, timezone: "Asia/Shanghai", overlap: "skip", window_ms: 86_400_000 });
  });
  it("keeps the fields of a job that it does not show", () => {
    const before = { task: { name: "a", queue_name: "q", type: "immediate", max_retries: 7, run_at: null } } as never;
    expect(bodyOf({ ...formOf(undefined, "UTC"), kind: "job", job: "b", queue: "q", cron: "@daily" }, before).task).toEqual({ name: "b", queue_name: "q", type: "immediate", max_retries: 7 });
  });
});
