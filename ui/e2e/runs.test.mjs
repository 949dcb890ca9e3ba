// Runs: start, watch, approve, cancel, rerun with an edited state, many at once.
import assert from "node:assert/strict";
import { test } from "node:test";
import { clean, settled, useConsole } from "./console.mjs";
import { local, until } from "./server.mjs";

const { it, visit } = useConsole();

const node = (page, key, status) => page.locator(`[data-node="${key}"][data-status="${status}"]`);

const REVIEWED = {
  title: "Reviewed", start: "write",
  nodes: {
    write: local("upper", { prep: { input_key: "$params.text" }, post: { output_key: "draft" } }),
    gate: { kind: "wait_event", params: { signal_key: "go" } },
    review: { kind: "approval", title: "Publish the draft?", prep: { input_map: { draft: "$shared.draft" } }, params: {} },
    publish: local("upper", { prep: { input_key: "$shared.draft" }, post: { output_key: "outcome" } }),
  },
  edges: [{ from: "write", to: "gate" }, { from: "gate", to: "review" }, { from: "review", action: "approved", to: "publish" }, { from: "review", action: "rejected", to: "write" }],
};

test("a run is started with a form, and its nodes change while one looks", async () => {
  await it().publish("reviewed", REVIEWED);
  const { page, problems, close } = await visit("/start?flow=reviewed");
  await page.locator("textarea").first().fill('{"text": "hello"}');
  await page.locator('button[type="submit"]').click();
  await page.waitForURL(/\/ui\/runs\/run_/);
  const id = page.url().match(/run_[0-9a-f]+/)[0];
  await node(page, "gate", "waiting").waitFor();
  await node(page, "write", "completed").waitFor();
  await page.locator('.why[data-why="signal"]').waitFor();
  await it().post(`/runs/${id}/signal`, { key: "go", value: true });
  // Nothing was clicked or loaded again: the stream brings the change.
  await node(page, "review", "waiting").waitFor();
  await page.locator('.why[data-why="approval"]').waitFor();
  await page.getByRole("button", { name: "Approve", exact: true }).first().click();
  await page.locator("dialog button[type=submit]").click();
  await node(page, "publish", "completed").waitFor();
  await page.locator('h1 ~ [role="status"] [data-status="completed"]').waitFor();
  const run = await it().run(id);
  assert.equal(run.shared.outcome, "HELLO");
  clean(problems);
  await close();
});

test("an approval is decided in the inbox, with the keyboard", async () => {
  const id = await it().start("reviewed", { params: { text: "inbox" } });
  const { page, problems, close } = await visit("/approvals");
  await it().post(`/runs/${id}/signal`, { key: "go", value: true });
  await page.locator(`[data-approval="${id}/review"]`).waitFor();
  await page.locator(`[data-approval="${id}/review"]`).click();
  await page.keyboard.press("a");
  await page.locator("dialog input").fill("go ahead");
  await page.keyboard.press("Enter");
  await it().ended(id, "completed");
  await page.locator(`[data-approval="${id}/review"]`).waitFor({ state: "detached" });
  await page.goto(`${it().url}/ui/approvals?tab=decided`);
  await page.getByText("go ahead").waitFor();
  clean(problems);
  await close();
});

test("a run is canceled, with a reason that the audit log keeps", async () => {
  const id = await it().start("reviewed", { params: { text: "cancel" } });
  const { page, problems, close } = await visit(`/runs/${id}`);
  await node(page, "gate", "waiting").waitFor();
  await page.keyboard.press("c");
  await page.locator("dialog").getByPlaceholder("optional").fill("not needed");
  await page.locator("dialog button[type=submit]").click();
  await page.locator('h1 ~ [role="status"] [data-status="canceled"]').waitFor();
  const line = await until(async () => (await it().get(`/audit?subject=${id}&what=run.cancel`)).items[0], "the line of the audit log");
  assert.equal(line.reason, "not needed");
  clean(problems);
  await close();
});

test("a run goes on from a node with an edited state", async () => {
  await it().publish("edited", {
    start: "first",
    nodes: { first: local("upper", { prep: { input_key: "$params.text" }, post: { output_key: "text" } }), second: local("lower", { prep: { input_key: "$shared.text" }, post: { output_key: "outcome" } }) },
    edges: [{ from: "first", to: "second" }],
  });
  const id = await it().start("edited", { params: { text: "before" } });
  await it().ended(id, "completed");
  const { page, problems, close } = await visit(`/runs/${id}`);
  await node(page, "second", "completed").waitFor();
  await page.keyboard.press("r");
  await page.locator("dialog select").selectOption("second");
  await page.locator("dialog input[type=checkbox]").check();
  await page.locator("dialog textarea").fill('{"text": "AFTER", "outcome": "before"}');
  await page.locator('dialog [data-dry-run="1"]').waitFor();
  await page.locator("dialog button[type=submit]").click();
  await until(async () => (await it().run(id)).shared.outcome === "after", "the second round");
  await page.getByText("round").first().waitFor();
  clean(problems);
  await close();
});

test("fifty failed runs are retried at once", async () => {
  await it().publish("flaky", { start: "call", nodes: { call: local("upper", { prep: { input_key: "$shared.text" }, post: { output_key: "outcome" } }), end: local("fail", { params: { message: "the account is closed", retryable: false } }) }, edges: [{ from: "call", to: "end" }] });
  const ids = await Promise.all(Array.from({ length: 50 }, () => it().start("flaky")));
  for (const id of ids) await it().ended(id, "failed");
  const { page, problems, close } = await visit("/runs?query=status:failed flow:flaky");
  await page.waitForFunction(() => document.querySelectorAll("[data-run]").length === 50);
  await page.locator("thead input[type=checkbox]").check();
  const bar = page.getByRole("toolbar");
  await bar.waitFor();
  // A page may be shorter than the list: then the toolbar offers all that match.
  const all = bar.getByRole("button", { name: /all/i });
  if (await all.isVisible()) await all.click();
  await bar.getByRole("button", { name: "Retry" }).click();
  await page.locator('dialog [data-dry-run="50"]').waitFor();
  await page.locator("dialog button[type=submit]").click();
  await page.waitForURL(/\/ui\/bulk\//);
  await page.locator('[data-done="50"]').waitFor();
  const rounds = await Promise.all(ids.map(async (id) => (await it().run(id)).round));
  assert.deepEqual([...new Set(rounds)], [2]);
  clean(problems);
  await close();
});

test("a run survives a restart of the server while one looks", async () => {
  const id = await it().start("reviewed", { params: { text: "again" } });
  const { page, problems, close } = await visit(`/runs/${id}`);
  await node(page, "gate", "waiting").waitFor();
  await page.locator('[data-live="live"]').waitFor();
  await it().kill();
  await page.locator('[data-live="connecting"], [data-live="polling"]').waitFor();
  await it().launch();
  // The change is made before the page may have connected again: it must not be lost.
  await it().post(`/runs/${id}/signal`, { key: "go", value: true });
  await node(page, "review", "waiting").waitFor();
  await page.locator('[data-live="live"]').waitFor();
  clean(problems, /net::ERR_(CONNECTION|INCOMPLETE|EMPTY|SOCKET)/);
  await close();
});

test("an unknown status does not break the page", async () => {
  const id = await it().start("reviewed", { params: { text: "unknown" } });
  await it().post(`/runs/${id}/cancel`);
  await it().ended(id, "canceled");
  const { page, problems, close } = await visit("/settings");
  await page.route(`**/api/v1/runs/${id}/view`, async (route) => {
    const response = await route.fetch();
    const view = await response.json();
    view.run.status = "hibernating";
    view.node_states.gate = { ...view.node_states.gate, status: "dreaming", kind: "oracle" };
    view.surprise = { of: "a newer server" };
    await route.fulfill({ response, json: view });
  });
  await page.goto(`${it().url}/ui/runs/${id}`);
  await page.locator('[role="status"] [data-status="hibernating"]').waitFor();
  await node(page, "gate", "dreaming").click();
  await page.locator('[data-panel="gate"]').getByText("dreaming").waitFor();
  clean(problems);
  await close();
});

test("a result of five megabytes is shown in parts", async () => {
  await it().publish("large", { start: "echo", nodes: { echo: local("echo", { prep: { input_map: { first: "$params.text", second: "$params.text" } }, post: { output_key: "text" } }) }, edges: [] });
  const id = await it().start("large", { params: { text: "x".repeat(5 << 19) } });
  await it().ended(id, "completed");
  const { page, problems, close } = await visit(`/runs/${id}?tab=json`);
  await settled(page);
  await page.getByText("5.0 MB").first().waitFor();
  const size = await page.evaluate(() => document.body.textContent.length);
  assert.ok(size < 1_000_000, `${size} characters stand in the page`);
  await page.goto(`${it().url}/ui/runs/${id}?node=echo`);
  await page.locator('[data-panel="echo"]').waitFor();
  clean(problems);
  await close();
});

test("hostile texts are texts", async () => {
  const image = '<img src=x onerror="globalThis.pwned=1">';
  const long = "W".repeat(10_000);
  const reversed = "\u202eevil\u202c \u0627\u0644\u0633\u0644\u0627\u0645";
  await it().publish("hostile", {
    title: image, start: "a", nodes: { a: local("echo", { title: `${image} ${reversed}`, prep: { input_key: "$params" }, post: { output_key: "value" } }), b: { kind: "approval", title: long, prep: { input_map: { html: image } }, params: {} } },
    edges: [{ from: "a", to: "b" }],
  });
  const id = await it().start("hostile", { params: { html: image, long, [image]: reversed }, labels: { owner: image.slice(0, 60) } });
  await it().deaden("hostile", [{ name: image, payload: { html: image, long }, error: `${image} ${long.slice(0, 2000)}` }]);
  const paths = [`/runs/${id}`, `/runs/${id}?node=b`, `/runs/${id}?tab=json`, `/runs/${id}?tab=events`, "/runs", "/approvals?tab=all", "/flows/hostile", "/dead-letters", "/queues/hostile?tab=failed", "/editor?flow=hostile", "/audit"];
  for (const size of [undefined, { width: 375, height: 812 }]) {
    const { page, problems, close } = await visit("/", size && { size });
    for (const path of paths) {
      await page.goto(`${it().url}/ui${path}`);
      await settled(page);
      assert.equal(await page.evaluate(() => globalThis.pwned), undefined, path);
      assert.equal(await page.locator('main img[src="x"]').count(), 0, path);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth + 1), `${path} is wider than its window`);
    }
    clean(problems);
    await close();
  }
});
