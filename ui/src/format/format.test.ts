import { expect, test } from "vitest";
import { commonWords } from "../words/common";
import { bytes, count, counted, money, shortId, tail } from "./number";
import { absolute, between, clock, duration, ms, relative } from "./time";

test("durations have the unit that people read", () => {
  expect([0, 0.4, 35, 99, 900, 48_600, 59_949, 59_960, 64_000, 300_000, 3_900_000, 276_000_000].map(duration)).toEqual(
    ["0 s", "0 s", "35 ms", "99 ms", "0.9 s", "48.6 s", "59.9 s", "1m 00s", "1m 04s", "5m 00s", "1h 05m", "3d 04h"]);
  expect(duration(-1)).toBe("–");
  expect(duration(Number.NaN)).toBe("–");
});

test("times are relative to now, in both directions and languages", () => {
  const now = 1_000_000_000;
  const { en, zh } = commonWords;
  expect([0, -3_000, -360_000, -3_600_000, -13 * 86_400_000, 12_000].map((by) => relative(now + by, now, en.time))).toEqual(["now", "3 s ago", "6 m ago", "1 h ago", "13 d ago", "in 12 s"]);
  expect(relative(now - 48_000, now, zh.time)).toBe("48 秒前");
  expect(relative(now + 120_000, now, zh.time)).toBe("2 分钟后");
});

test("absolute times name their zone", () => {
  const at = Date.UTC(2026, 0, 31, 14, 31, 20, 123);
  expect(absolute(at, "utc")).toBe("2026-01-31 14:31:20.123 UTC");
  expect(absolute(at, "local")).toMatch(/^2026-0[12]-\d\d \d\d:\d\d:20\.123 [+-]\d\d:\d\d$/);
  expect(clock(at, at + 1000, "utc")).toBe("14:31:20");
  expect(clock(at, at + 86_400_000, "utc")).toBe("2026-01-31 14:31:20");
  expect(absolute(Number.NaN, "utc")).toBe("–");
});

test("absent and unreadable times are undefined", () => {
  expect([ms(null), ms(undefined), ms(""), ms("soon")]).toEqual([undefined, undefined, undefined, undefined]);
  expect(between("2026-01-01T00:00:00Z", "2026-01-01T00:00:01.5Z")).toBe(1500);
  expect(between("2026-01-01T00:00:00Z", null)).toBeUndefined();
});

test("numbers", () => {
  expect([count(1284), counted({ count: 10_000, more: true }), money(-1280), money(5)]).toEqual(["1,284", "10,000+", "-1,280", "5"]);
  expect([0, 1023, 1024, 5_242_880, 3 * 2 ** 30].map(bytes)).toEqual(["0 B", "1023 B", "1.0 KB", "5.0 MB", "3.0 GB"]);
});

test("ids keep their end", () => {
  expect(shortId("run_01a1e2f476647000800000000000089e7".slice(0, 36))).toMatch(/^01a1e2f4…\w{4}$/);
  expect(shortId("w-1")).toBe("w-1");
  expect(tail("run_01a1e2f47664")).toBe("…7664");
});
