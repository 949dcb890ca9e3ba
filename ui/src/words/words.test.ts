import { expect, test } from "vitest";

const files = import.meta.glob<Record<string, unknown>>("./*.ts", { eager: true });
const dictionaries = Object.entries(files).flatMap(([file, exported]) =>
  Object.entries(exported).filter(([, value]) => value !== null && typeof value === "object" && "en" in value && "zh" in value).map(([name, value]) => ({ file, name, ...(value as { en: object; zh: object }) })));

function leaves(value: unknown, path = ""): [string, unknown][] {
  return value !== null && typeof value === "object" ? Object.entries(value).flatMap(([key, inner]) => leaves(inner, `${path}.${key}`)) : [[path, value]];
}

test("there are dictionaries", () => {
  expect(dictionaries.length).toBeGreaterThan(4);
});

test.each(dictionaries)("$name has the same keys in both languages, none empty", ({ en, zh }) => {
  const [english, chinese] = [leaves(en), leaves(zh)];
  expect(chinese.map(([path]) => path).sort()).toEqual(english.map(([path]) => path).sort());
  const other = new Map(chinese);
  for (const [path, text] of english) {
    expect(typeof other.get(path), path).toBe(typeof text);
    if (typeof text === "string") expect([text, other.get(path)], path).not.toContain("");
    if (typeof text === "function") expect((other.get(path) as () => void).length, path).toBeLessThanOrEqual(text.length);
  }
});

test.each(dictionaries)("$name is Chinese where it is Chinese", ({ zh, name }) => {
  const texts = leaves(zh).filter(([, text]) => typeof text === "string" && text.length > 12 && !/[\u4e00-\u9fff]/.test(text));
  expect(texts, name).toEqual([]);
});

/** The glossary: one word for each noun. */
const GLOSSARY: [RegExp, string][] = [[/\bdead letters?\b/i, "死信"], [/\bschedules?\b/i, "定时"], [/\bleases?\b/i, "租约"], [/\bheartbeats?\b/i, "心跳"], [/\bledger\b/i, "账本"], [/\bapprovals?\b/i, "审批"], [/\bqueues?\b/i, "队列"]];

test.each(dictionaries)("$name keeps to the glossary", ({ en, zh }) => {
  const chinese = new Map(leaves(zh));
  const wrong = leaves(en).flatMap(([path, text]) => {
    const other = chinese.get(path);
    // Texts with code in them name keys, which are not translated.
    if (typeof text !== "string" || typeof other !== "string" || /`/.test(text) || path === ".values.trigger") return [];
    return GLOSSARY.filter(([word, term]) => word.test(text) && !other.includes(term)).map(([, term]) => `${path}: "${text}" is "${other}" without ${term}`);
  });
  expect(wrong).toEqual([]);
});

/** English nouns of counts, in the plural. */
const COUNTED = /\b1 (?:more |other |dead |live |failed |new )*(?:attempts|branches|calls|changes|decisions|errors|events|examples|flows|groups|items|jobs|leases|letters|nodes|problems|queues|rows|runs|servers|services|slots|steps|versions|warnings|workers)\b/;

test.each(dictionaries)("$name has no plural after one", ({ en }) => {
  const wrong = leaves(en).flatMap(([path, text]) => {
    if (typeof text !== "function") return [];
    // Counts are numbers, or texts that are numbers written for people.
    const said = [1, "1"].flatMap((one) => {
      try {
        return [String((text as (...args: unknown[]) => unknown)(...Array(text.length).fill(one)))];
      } catch {
        return [];
      }
    });
    // One of the two forms is the one that the message takes.
    return said.every((words) => COUNTED.test(words)) && said.length > 0 ? [`${path}: ${said[0]}`] : [];
  });
  expect(wrong).toEqual([]);
});
