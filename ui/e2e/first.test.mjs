// The first minutes: an empty store with its checklist and its empty lists, then the guides and the reference of the API.
import assert from "node:assert/strict";
import { test } from "node:test";
import { axe } from "./browser.mjs";
import { clean, settled, useConsole } from "./console.mjs";
import { until } from "./server.mjs";

const { it, visit } = useConsole();

test("lists without rows say so, with a command; a filter without a hit is another state", async () => {
  const { page, problems, close } = await visit("/runs");
  for (const path of ["/runs", "/flows", "/queues", "/dead-letters", "/workers", "/schedules", "/accounts", "/bulk"]) {
    await page.goto(`${it().url}/ui${path}`);
    await page.locator('[data-empty="nothing"]').first().waitFor();
    assert.match(await page.locator('[data-empty="nothing"]').first().innerText(), /windlass \w+/, path);
  }
  await page.goto(`${it().url}/ui/runs?query=status:failed`);
  await page.locator('[data-empty="no-match"]').waitFor();
  await page.locator('[data-empty="no-match"] button').click();
  await page.locator('[data-empty="nothing"]').waitFor();
  clean(problems);
  await close();
});

test("the checklist of an empty store leads to the first run", async () => {
  const { page, problems, close } = await visit("/");
  const command = await page.locator(".first .code").innerText();
  const worker = it().command(command.split(" ").slice(1));
  await page.locator(".first .stepno.ok").first().waitFor();
  await page.getByRole("button", { name: "Load the examples" }).click();
  await until(async () => (await it().get("/flows")).items.length > 10, "the example flows");
  await page.locator(".first").getByRole("link", { name: "Start run" }).click();
  await page.waitForURL(/\/start\?flow=graph\/approval|\/start\?flow=graph%2Fapproval/);
  await settled(page);
  await page.locator('button[type="submit"]').click();
  await page.waitForURL(/\/ui\/runs\/run_/);
  await page.locator('[data-node="draft"][data-status="completed"]').waitFor();
  await page.locator('[data-node="review"][data-status="waiting"]').waitFor();
  await worker.stop();
  clean(problems);
  await close();
});

test("the guides have an index and a search, and stand in the binary", async () => {
  const { page, problems, close } = await visit("/");
  const hosts = new Set();
  page.on("request", (request) => hosts.add(new URL(request.url()).host));
  await page.locator("nav").getByText("Documentation").click();
  await page.waitForURL(/\/docs\/?$/);
  await page.locator("#search").fill("dead letters replay");
  const hit = page.locator("#found a").first();
  await hit.waitFor();
  await hit.click();
  await page.locator("h1").waitFor();
  assert.match(await page.locator("body").innerText(), /replay/i);
  assert.deepEqual(await axe(page), []);
  assert.deepEqual([...hosts], [new URL(it().url).host]);
  clean(problems);
  await close();
});

test("the reference of the API sends requests", async () => {
  const { page, problems, close } = await visit("/");
  const hosts = new Set();
  page.on("request", (request) => request.url().startsWith("http") && hosts.add(new URL(request.url()).host));
  await page.goto(`${it().url}/docs/api`);
  const route = page.locator(".opblock", { hasText: "/api/v1/about" }).first();
  if (!(await route.isVisible().catch(() => false))) await page.locator(".opblock-tag", { hasText: "server" }).first().click();
  await route.locator(".opblock-summary").click();
  await route.getByRole("button", { name: "Execute" }).click();
  await route.locator(".live-responses-table .response-col_status", { hasText: "200" }).waitFor();
  assert.deepEqual([...hosts], [new URL(it().url).host]);
  clean(problems);
  await close();
});
