// Trouble: refusals, answers that are no JSON or have another shape, a server that is gone. A page says what happened,
// offers a retry, and never goes blank.
import assert from "node:assert/strict";
import { test } from "node:test";
import { useConsole } from "./console.mjs";
import { local, until } from "./server.mjs";

const paths = {};

const { it, visit } = useConsole(async (server) => {
  await server.publish("film", { start: "write", nodes: { write: local("echo", { prep: { input_map: { title: "Harbour" } }, post: { output_key: "film" } }), review: { kind: "approval", params: {} } }, edges: [{ from: "write", to: "review" }] });
  const id = await server.start("film");
  await until(async () => (await server.get("/approvals")).items.length === 1, "the approval");
  await server.deaden("render", [{ payload: { file: "a.png" } }]);
  const job = await server.post("/jobs", { queue: "render", name: "work" });
  const schedule = await server.post("/schedules", { name: "nightly", cron_expr: "0 3 * * *", timezone: "UTC", flow: "film" });
  await server.post("/accounts", { id: "acme" });
  Object.assign(paths, {
    overview: "/", runs: "/runs", run: `/runs/${id}`, state: `/runs/${id}?tab=state`, events: `/runs/${id}?tab=events`, definition: `/runs/${id}?tab=definition`, start: "/start?flow=film", flows: "/flows", flow: "/flows/film",
    versions: "/flows/film?tab=versions", editor: "/editor?flow=film", queues: "/queues", queue: "/queues/render", job: `/jobs/${job.id}`, "dead letters": "/dead-letters", workers: "/workers", schedules: "/schedules",
    schedule: `/schedules/${schedule.id}`, approvals: "/approvals?tab=all", accounts: "/accounts", account: "/accounts/acme", audit: "/audit", settings: "/settings", bulk: "/bulk",
  });
});

const problem = (status, code) => ({ status, contentType: "application/problem+json", headers: { "x-request-id": "req_seen" }, body: JSON.stringify({ type: `/docs/errors#${code}`, title: "no", status, code, detail: "the store says `no`" }) });
const json = (body) => ({ status: 200, contentType: "application/json", body });

/** Answers of all routes, and the code that the page names; `undefined` = the page may also show what it can. */
const TROUBLES = {
  "500 with a problem": [problem(500, "internal"), "internal"],
  "403 with a problem": [problem(403, "forbidden"), "forbidden"],
  "502 with a page of a proxy": [{ status: 502, contentType: "text/html", body: "<html><h1>Bad gateway</h1></html>" }, "http_502"],
  "half of an answer": [json('{"items": [{"id": "run_'), "bad_answer"],
  "no connection": [undefined, "network"],
  "null": [json("null"), "bad_answer"], "a text": [json('"hello"'), "bad_answer"],
  "an empty object": [json("{}")], "a list": [json("[]")], "other fields": [json('{"items": [{}], "tiles": 5, "queues": [null], "runs": 1, "workers": [{}], "schedules": [{}]}')],
};

const WAIT_MS = 20_000;

/** The complaints about one page under one trouble. */
async function look(page, name, path, code) {
  await page.goto(`${it().url}/ui${path}`);
  const alert = page.locator(`main [role="alert"]${code ? `[data-code="${code}"]` : ""}`).first();
  const isThere = await page.waitForFunction((wanted) => {
    const main = document.querySelector("main");
    return main && document.querySelectorAll("nav a").length > 5 && !document.querySelector(".skeleton") && main.innerText.trim().length > 1 && (!wanted || main.querySelector(`[role="alert"][data-code="${wanted}"]`));
  }, code, { timeout: WAIT_MS }).then(() => true, () => false);
  const wrong = [];
  if (!isThere) wrong.push(`${name}: ${(await page.locator("body").innerText()).slice(-300)}`);
  // An event of the stream may read again at any time: the error goes and comes back.
  const hasRetry = () => alert.getByRole("button", { name: "Retry" }).waitFor({ timeout: WAIT_MS }).then(() => true, () => false);
  const hasId = () => alert.getByText("req_seen").waitFor({ timeout: WAIT_MS }).then(() => true, () => false);
  if (isThere && code && !(await hasRetry())) wrong.push(`${name}: no retry`);
  if (isThere && code === "internal" && !(await hasId())) wrong.push(`${name}: no request id`);
  return wrong;
}

const TABS = 3;

for (const [name, [answer, code]] of Object.entries(TROUBLES)) {
  test(`no page goes blank: ${name}`, async () => {
    const left = Object.entries(paths);
    const wrong = [];
    const work = async () => {
      const { page, close } = await visit("/settings");
      await page.route("**/api/v1/**", (route) => (answer ? route.fulfill(answer) : route.abort()));
      for (let next = left.shift(); next; next = left.shift()) wrong.push(...(await look(page, ...next, code)));
      await close();
    };
    await Promise.all(Array.from({ length: TABS }, work));
    assert.deepEqual(wrong, []);
  });
}

test("a retry reads again", async () => {
  const { page, close } = await visit("/settings");
  let isWell = false;
  await page.route("**/api/v1/queues*", (route) => (isWell ? route.continue() : route.fulfill(problem(500, "internal"))));
  await page.goto(`${it().url}/ui/queues`);
  const retry = page.locator('main [role="alert"]').getByRole("button", { name: "Retry" });
  await retry.waitFor();
  // Without events nothing reads again but the button.
  await page.keyboard.press(".");
  await page.locator('[data-live="paused"]').waitFor();
  isWell = true;
  // An answer that was on its way may have mended the page already.
  await retry.click({ timeout: 2_000 }).catch(() => undefined);
  await page.locator("tbody tr", { hasText: "render" }).waitFor();
  assert.equal(await page.locator('main [role="alert"]').count(), 0);
  await close();
});

test("an answer of another shape breaks its panel only, and a retry mends it", async () => {
  const { page, close } = await visit("/settings");
  let isWell = false;
  await page.route("**/api/v1/queues*", (route) => (isWell ? route.continue() : route.fulfill(json('{"queues": [{"name": 5}]}'))));
  await page.goto(`${it().url}/ui/queues`);
  await page.getByRole("heading", { name: "Queues" }).waitFor();
  const retry = page.locator('main [role="alert"]').getByRole("button", { name: "Retry" });
  await retry.waitFor();
  // Without events nothing reads again but the button.
  await page.keyboard.press(".");
  await page.locator('[data-live="paused"]').waitFor();
  isWell = true;
  // An answer that was on its way may have mended the page already.
  await retry.click({ timeout: 2_000 }).catch(() => undefined);
  await page.locator("tbody tr", { hasText: "render" }).waitFor();
  await close();
});

test("a server that is gone leaves the page, and the page goes on when it is back", async () => {
  const { page, close } = await visit("/queues");
  await page.locator("tbody tr", { hasText: "render" }).waitFor();
  await it().kill();
  await page.locator('[data-live="connecting"], [data-live="polling"]').waitFor();
  // The script of this page was never loaded: the server cannot send it.
  await page.locator("nav").getByText("Schedules").click();
  const alert = page.locator('[role="alert"][data-code="not_loaded"]');
  await alert.getByRole("button", { name: "Reload" }).click();
  await page.locator('[role="alert"][data-code="network"]').waitFor();
  // Another page that was loaded is shown, with its last rows.
  await page.locator("nav").getByText("Queues").click();
  await page.locator("tbody tr", { hasText: "render" }).waitFor();
  // Nor does a dialog without a script take the page away.
  await page.keyboard.press("?");
  await page.locator(".toast").waitFor();
  await page.locator("tbody tr", { hasText: "render" }).waitFor();
  await it().launch();
  await page.locator('[data-live="live"]').waitFor();
  await page.locator("nav").getByText("Schedules").click();
  const again = page.locator('[role="alert"]').getByRole("button", { name: /Reload|Retry/ }).first();
  await page.locator("tbody tr", { hasText: "nightly" }).or(again).first().waitFor();
  if (await again.isVisible()) await again.click();
  await page.locator("tbody tr", { hasText: "nightly" }).waitFor();
  await close();
});
