import { expect, test } from "vitest";
import { KeyRegistry } from "./registry";

const key = (name: string, more: object = {}) => ({ key: name, ctrlKey: false, metaKey: false, altKey: false, ...more });
const label = () => "";

function registryWith() {
  const registry = new KeyRegistry();
  const ran: string[] = [];
  const say = (name: string) => () => void ran.push(name);
  registry.add({ bindings: [{ keys: "j", label, run: say("down") }, { keys: "g o", label, run: say("overview") }, { keys: "o", label, run: say("o") }, { keys: "mod+k", label, run: say("find"), inInputs: true }] });
  return { registry, ran, say };
}

test("one key, two in a row, and with Ctrl or Cmd", () => {
  const { registry, ran } = registryWith();
  registry.press(key("j"), false, 0);
  registry.press(key("g"), false, 0);
  registry.press(key("o"), false, 100);
  registry.press(key("K", { metaKey: true }), false, 200);
  expect(ran).toEqual(["down", "overview", "find"]);
});

test("the second key must come soon", () => {
  const { registry, ran } = registryWith();
  registry.press(key("g"), false, 0);
  registry.press(key("o"), false, 5_000);
  expect(ran).toEqual(["o"]);
});

test("inputs keep their keys, except those that ask for more", () => {
  const { registry, ran } = registryWith();
  expect(registry.press(key("j"), true, 0)).toBe(false);
  expect(registry.press(key("k", { ctrlKey: true }), true, 0)).toBe(true);
  expect(registry.press(key("j", { altKey: true }), false, 0)).toBe(false);
  expect(ran).toEqual(["find"]);
});

test("a page may redefine a key, and gives it back", () => {
  const { registry, ran, say } = registryWith();
  const remove = registry.add({ bindings: [{ keys: "j", label, run: say("page") }] });
  registry.press(key("j"), false, 0);
  remove();
  registry.press(key("j"), false, 0);
  expect(ran).toEqual(["page", "down"]);
});
