// The rules of every page: no error, no serious finding of axe, both languages, both themes, phone width, keyboard.
import assert from "node:assert/strict";
import { test } from "node:test";
import { axe, overflows, PHONE, WIDE } from "./browser.mjs";
import { clean, settled, useConsole } from "./console.mjs";
import { local, until } from "./server.mjs";

const paths = {};

const { it, browser, visit } = useConsole(async (server) => {
  await server.publish("film", {
    title: "Film", start: "write",
    nodes: { write: local("echo", { prep: { input_map: { title: "Harbour" } }, post: { output_key: "film" } }), review: { kind: "approval", title: "Show the film?", prep: { input_map: { film: "$shared.film" } }, params: {} }, publish: local("echo", { prep: { input_key: "$shared.film" } }) },
    edges: [{ from: "write", to: "review" }, { from: "review", action: "approved", to: "publish" }],
  });
  const id = await server.start("film");
  await until(async () => (await server.get("/approvals")).items.length === 1, "the approval");
  await server.deaden("render", [{ payload: { file: "a.png" } }, { payload: { file: "b.png" } }]);
  const job = await server.post("/jobs", { queue: "render", name: "work" });
  const schedule = await server.post("/schedules", { name: "nightly", cron_expr: "0 3 * * *", timezone: "Europe/Berlin", flow: "film" });
  await server.post("/accounts", { id: "acme" });
  await server.post("/accounts/acme/deposit", { amount: 1000, key: "first" });
  await server.post("/queues/render/pause");
  Object.assign(paths, {
    overview: "/", runs: "/runs", run: `/runs/${id}`, node: `/runs/${id}?node=review`, state: `/runs/${id}?tab=state`, events: `/runs/${id}?tab=events`, definition: `/runs/${id}?tab=definition`, json: `/runs/${id}?tab=json`,
    start: "/start?flow=film", flows: "/flows", flow: "/flows/film", versions: "/flows/film?tab=versions", "runs of a flow": "/flows/film?tab=runs", schedules: "/schedules", schedule: `/schedules/${schedule.id}`, "new schedule": "/schedules?new=1",
    editor: "/editor?flow=film", queues: "/queues", queue: "/queues/render", job: `/jobs/${job.id}`, "dead letters": "/dead-letters", workers: "/workers", approvals: "/approvals?tab=all", decided: "/approvals?tab=decided",
    accounts: "/accounts", account: "/accounts/acme", audit: "/audit", settings: "/settings", bulk: "/bulk", missing: "/no/such/page",
  });
});

for (const theme of ["light", "dark"]) {
  for (const language of ["en", "zh"]) {
    for (const size of [WIDE, PHONE]) {
      test(`every page is whole: ${theme}, ${language}, ${size.width} px`, async () => {
        const { page, problems, close } = await visit("/", { theme, language, size });
        const wrong = [];
        for (const [name, path] of Object.entries(paths)) {
          await page.goto(`${it().url}/ui${path}`);
          await settled(page);
          if (await overflows(page)) wrong.push(`${name}: wider than its window`);
          if ((await page.locator("h1").count()) !== 1) wrong.push(`${name}: ${await page.locator("h1").count()} h1`);
          if ((await page.locator('main [role="alert"]').count()) > 0 && name !== "missing") wrong.push(`${name}: ${await page.locator('main [role="alert"]').first().innerText()}`);
          // The rules of axe do not depend on the language; each theme has its own contrast.
          if (language === "en") wrong.push(...(await axe(page)).map((finding) => `${name}: ${finding}`));
          const isChinese = (await page.locator("html").getAttribute("lang")).startsWith("zh");
          if (isChinese !== (language === "zh")) wrong.push(`${name}: the language is not ${language}`);
          if (isChinese && !/[\u4e00-\u9fff]/.test(await page.locator("main").innerText()) && name !== "json") wrong.push(`${name}: no Chinese word`);
        }
        const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        if ((dark === "rgb(255, 255, 255)") === (theme === "dark")) wrong.push(`the background is ${dark}`);
        assert.deepEqual(wrong, []);
        clean(problems);
        await close();
      });
    }
  }
}

test("seven tabs share one stream", async () => {
  const context = await browser().newContext({ viewport: WIDE });
  const pages = [];
  for (let n = 0; n < 7; n += 1) {
    const page = await context.newPage();
    pages.push(page);
    await page.goto(`${it().url}/ui/queues`);
    await page.locator('[data-live="live"]').waitFor();
  }
  const before = await it().get("/queues/render");
  await it().post("/jobs", { queue: "render", name: "one more" });
  await Promise.all(pages.map((page) => page.waitForFunction(
    (ready) => [...document.querySelectorAll("tbody tr")].some((row) => row.textContent.includes("render") && row.children[1].textContent === String(ready)), (before.depth.queued ?? 0) + 1)));
  await context.close();
});

test("the language and the theme are changed in the settings and kept", async () => {
  const { page, problems, close } = await visit("/settings");
  await page.getByRole("button", { name: "中文" }).click();
  await page.getByRole("heading", { name: "设置" }).waitFor();
  await page.getByRole("button", { name: "深色" }).click();
  await page.reload();
  await page.getByRole("heading", { name: "设置" }).waitFor();
  assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
  clean(problems);
  await close();
});

test("the keyboard goes everywhere", async () => {
  const { page, problems, close } = await visit("/");
  for (const [key, path] of [["q", "queues"], ["d", "dead-letters"], ["w", "workers"], ["s", "schedules"], ["a", "approvals"], ["f", "flows"], ["t", "runs"]]) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await page.waitForURL(new RegExp(`/ui/${path}$`));
  }
  await page.keyboard.press("g");
  await page.keyboard.press("f");
  await page.locator("[data-row]").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/ui\/flows\/film$/);
  await page.keyboard.press("?");
  await page.locator("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
  clean(problems);
  await close();
});

test("a refused request shows its code, its text, its request id and a retry", async () => {
  const { page, close } = await visit("/flows/no-such-flow");
  const error = page.locator('main [role="alert"]');
  await error.waitFor();
  assert.equal(await error.getAttribute("data-code"), "unknown_flow");
  assert.match(await error.innerText(), /no-such-flow/);
  assert.ok((await error.locator(".mono").count()) > 0, "no request id");
  await error.getByRole("button", { name: "Retry" }).click();
  await close();
});

test("a server that asks for a token gets one, and the page keeps its state", async () => {
  const { page, close } = await visit("/settings");
  let token;
  await page.route("**/api/v1/queues*", async (route) => {
    token = route.request().headers().authorization;
    if (token === "Bearer secret") return route.continue();
    return route.fulfill({ status: 401, contentType: "application/problem+json", body: JSON.stringify({ code: "unauthorized", title: "sign in", detail: "give a token", status: 401 }) });
  });
  await page.goto(`${it().url}/ui/queues`);
  await page.locator('dialog input[type="password"]').fill("secret");
  await page.locator("dialog button[type=submit]").click();
  await page.locator("tbody tr", { hasText: "render" }).waitFor();
  assert.equal(token, "Bearer secret");
  await close();
});

test("the policy of the page allows no inline script", async () => {
  const { page, close } = await visit("/");
  const response = await page.request.get(`${it().url}/ui/`);
  const policy = response.headers()["content-security-policy"];
  assert.match(policy, /script-src 'self'(;|$)/);
  assert.doesNotMatch(await response.text(), /<script(?![^>]*\ssrc=)[^>]*>/);
  await close();
});
