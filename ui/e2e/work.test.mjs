// Dead letters, queues, the editor, schedules.
import assert from "node:assert/strict";
import { test } from "node:test";
import { clean, useConsole } from "./console.mjs";
import { local, until } from "./server.mjs";

const { it, visit } = useConsole();

test("a group of dead letters is replayed with a patch", async () => {
  await it().deaden("render", Array.from({ length: 6 }, (_, n) => ({ payload: { file: `cat-${n}.png`, seed: n }, error: `HTTP 503 from motion-${n}: model overloaded` })));
  const { page, problems, close } = await visit("/dead-letters");
  const group = page.locator("[data-group]");
  await group.waitFor();
  assert.match(await group.innerText(), /\b6\b/);
  await group.click();
  await page.locator("[data-letter]").nth(5).waitFor();
  await group.getByRole("button", { name: "Replay…" }).click();
  await page.locator("dialog").getByText("Replay 6 dead letters").waitFor();
  await page.locator("dialog textarea").fill('{"model": "motion-2", "seed": null}');
  await page.locator("dialog").getByText("All at once").or(page.locator("dialog input").first()).first().fill("100");
  await page.locator("dialog button[type=submit]").click();
  await page.locator("dialog").waitFor({ state: "detached" });
  await until(async () => (await it().get("/queues/render")).dead_letters === 0, "the replay");
  await page.locator('[data-empty="nothing"]').waitFor();
  const { jobs } = await it().post("/jobs/claim", { worker_id: "e2e", queues: ["render"], max: 10, wait_ms: 1000 });
  assert.deepEqual(Object.keys(jobs[0].input ?? jobs[0].payload).sort(), ["file", "model"]);
  clean(problems);
  await close();
});

test("a dead letter is discarded with a reason", async () => {
  await it().deaden("mail", [{ error: "no such mailbox" }, { error: "no such mailbox" }]);
  const { page, problems, close } = await visit("/dead-letters?queue=mail&view=letters");
  await page.locator("[data-letter] input[type=checkbox]").first().check();
  await page.getByRole("button", { name: "Discard…" }).first().click();
  const confirm = page.locator("dialog button[type=submit]");
  assert.equal(await confirm.isDisabled(), true);
  await page.locator("dialog input").fill("the customer has left");
  await confirm.click();
  await until(async () => (await it().get("/queues/mail")).dead_letters === 1, "the discard");
  const line = await until(async () => (await it().get("/audit?what=dlq.discard")).items[0], "the line of the audit log");
  assert.equal(line.reason, "the customer has left");
  clean(problems);
  await close();
});

test("a queue is paused, limited and resumed", async () => {
  await it().post("/jobs", { queue: "slow", name: "work" });
  const { page, problems, close } = await visit("/queues/slow");
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.locator("dialog button[type=submit]").click();
  await page.locator('main [data-status="paused"]').waitFor();
  await page.getByRole("button", { name: "Edit limits" }).click();
  await page.locator("dialog input").first().fill("3");
  await page.locator("dialog button[type=submit]").click();
  await page.getByText("3 at once").waitFor();
  await page.getByRole("button", { name: "Resume", exact: true }).click();
  await page.locator("dialog button[type=submit]").click();
  await page.locator('main [data-status="paused"]').waitFor({ state: "detached" });
  const queue = await it().get("/queues/slow");
  assert.equal(queue.paused, false);
  assert.equal(queue.limits.concurrency, 3);
  clean(problems);
  await close();
});

test("a limit that the server refuses is explained in place", async () => {
  await it().post("/jobs", { queue: "strict", name: "work" });
  const { page, close } = await visit("/queues/strict");
  await page.getByRole("button", { name: "Edit limits" }).click();
  await page.locator("dialog input").first().fill("-1");
  await page.locator("dialog button[type=submit]").click();
  const error = page.locator('dialog [role="alert"]');
  await error.waitFor();
  assert.match(await error.innerText(), /concurrency/);
  assert.match(await error.getAttribute("data-code"), /\w/);
  await close();
});

const FLOW = `title: Edited
start: a
nodes:
  a: {kind: local, func: upper, prep: {input_key: $params.text}, post: {output_key: b}}
  c: {kind: approval}
edges:
  - {from: a, to: c}
`;

test("an error is shown in place while one types; the fixed flow is published and compared", async () => {
  await it().publish("edit me", FLOW);
  const { page, problems, close } = await visit("/editor?flow=edit me&node=c");
  const text = page.locator(".cm-content");
  await text.waitFor();
  // The address names a node: the cursor stands at its text.
  await page.locator(".cm-activeLine", { hasText: "c: {kind: approval}" }).waitFor();
  await page.locator('[data-problems="0"]').waitFor();
  await page.locator('.graph [data-node="c"]').waitFor();
  await text.click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("  - {from: c, action: approved, to: nowhere}\n");
  await page.locator('[data-problems="1"]').waitFor();
  await page.locator(".cm-lintRange-error").waitFor();
  const problem = page.locator('[data-severity="error"]');
  assert.match(await problem.innerText(), /unknown node `nowhere`/);
  assert.equal(await page.getByRole("button", { name: "Publish", exact: true }).isDisabled(), true);
  await problem.locator("button").click();
  assert.match(await page.locator(".cm-activeLine").innerText(), /nowhere/);
  await page.keyboard.press("Control+End");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("End");
  // The first press stops at the indentation.
  await page.keyboard.press("Shift+Home");
  await page.keyboard.type("- {from: c, action: approved, to: a}");
  await page.locator('[data-problems="0"]').waitFor();
  // A click on a node moves the cursor to its text, and the reverse.
  await page.locator('.graph [data-node="c"]').click();
  await page.locator(".cm-activeLine", { hasText: "c: {kind: approval}" }).waitFor();
  await page.getByRole("button", { name: "Publish", exact: true }).click();
  await page.locator("dialog input").fill("back to the start");
  await page.locator("dialog button[type=submit]").click();
  await page.waitForURL(/tab=versions/);
  await page.locator(".cm-changedLine, .cm-insertedLine").first().waitFor();
  await page.getByRole("button", { name: "Graph", exact: true }).click();
  await page.waitForFunction(() => document.querySelectorAll(".flow-graph [data-node]").length >= 4);
  const { items } = await it().get("/flows/edit%20me/versions");
  assert.equal(items[0].version, 2);
  assert.equal(items[0].note, "back to the start");
  clean(problems);
  await close();
});

test("a draft outlives its page and can be discarded", async () => {
  await it().publish("draft", FLOW);
  const { page, problems, close } = await visit("/editor?flow=draft");
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("# kept");
  await page.waitForFunction(() => localStorage.getItem("windlass.draft.draft")?.includes("# kept"));
  await page.reload();
  await page.locator(".cm-content", { hasText: "# kept" }).waitFor();
  await page.getByRole("button", { name: "Discard the draft" }).click();
  await page.locator("dialog button[type=submit]").click();
  await page.waitForFunction(() => !document.querySelector(".cm-content").textContent.includes("# kept"));
  clean(problems);
  await close();
});

test("a definition is completed while one types", async () => {
  const { page, problems, close } = await visit("/editor");
  const text = page.locator(".cm-content");
  await text.click();
  await page.keyboard.press("Control+a");
  await page.keyboard.type("start: a\nnodes:\n  a:\n    kind: appr");
  // The editor takes Enter as a new line for a moment after the offers appear; a click counts at once.
  await page.locator(".cm-tooltip-autocomplete li", { hasText: "approval" }).first().click();
  await page.locator(".cm-line", { hasText: "kind: approval" }).waitFor();
  clean(problems);
  await close();
});

test("a draft is tried before it is published", async () => {
  await it().publish("tried", { start: "a", nodes: { a: local("upper", { prep: { input_key: "$params.text" }, post: { output_key: "loud" } }) }, edges: [] });
  const { page, problems, close } = await visit("/editor?flow=tried");
  await page.locator('[data-problems="0"]').waitFor();
  await page.getByRole("button", { name: "Test run" }).click();
  await page.locator("dialog textarea").fill('{"text": "quiet"}');
  await page.locator("dialog button[type=submit]").click();
  await page.locator('[data-test-run="completed"]').waitFor();
  await page.locator('.graph [data-node="a"][data-status="completed"]').waitFor();
  assert.equal((await it().get("/flows/tried")).latest_version, 1);
  // There is no `drafts/tried` at first: the console asks for it and gets 404.
  clean(problems, /404/);
  await close();
});

test("a schedule is created with a preview, triggered and turned off", async () => {
  await it().publish("nightly", { start: "a", nodes: { a: local("echo", { prep: { input_key: "$params" }, post: { output_key: "x" } }) }, edges: [] });
  const { page, problems, close } = await visit("/schedules");
  await page.getByRole("button", { name: "New schedule" }).first().click();
  const dialog = page.locator("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("every morning");
  await dialog.getByLabel("Flow", { exact: true }).fill("nightly");
  await dialog.getByLabel("Cron expression").fill("30 2 * * *");
  await dialog.getByLabel("Time zone").fill("Europe/Berlin");
  await page.waitForFunction(() => /Europe\/Berlin/.test(document.querySelector("dialog .times thead")?.textContent) && document.querySelectorAll("dialog .times tbody tr").length === 10);
  assert.match(await dialog.locator(".times").innerText(), /02:30:00 \+0[12]:00/);
  await dialog.locator("button[type=submit]").click();
  await page.waitForURL(/\/schedules\//);
  await page.getByRole("button", { name: "Run now" }).click();
  await page.locator("dialog button[type=submit]").click();
  await page.locator('main [data-status="completed"]').waitFor();
  await page.getByRole("button", { name: "Turn off" }).click();
  await page.locator("dialog button[type=submit]").click();
  await page.locator('main [data-status="disabled"]').waitFor();
  const { schedules } = await it().get("/schedules");
  assert.deepEqual(schedules.map(({ name, enabled, cron_expr }) => ({ name, enabled, cron_expr })), [{ name: "every morning", enabled: false, cron_expr: "30 2 * * *" }]);
  // Half of an expression is refused while one types.
  clean(problems, /schedules\/preview/);
  await close();
});

test("a wrong cron expression is explained where it is typed", async () => {
  const { page, close } = await visit("/schedules?new=1");
  await page.locator("dialog").getByLabel("Cron expression").fill("30 2 * *");
  const error = page.locator('dialog [role="alert"]');
  await error.waitFor();
  assert.match(await error.innerText(), /4 fields, expected 5/);
  await close();
});

test("money is deposited once, and the ledger adds up", async () => {
  await it().post("/accounts", { id: "acme" });
  const { page, problems, close } = await visit("/accounts/acme");
  await page.getByRole("button", { name: "Deposit" }).click();
  await page.locator("dialog input").first().fill("2500");
  await page.locator("dialog button[type=submit]").click();
  await page.locator("tbody tr", { hasText: "Deposit" }).waitFor();
  await page.getByRole("button", { name: "Check the sum" }).click();
  await page.locator('[data-sum="ok"]').waitFor();
  clean(problems);
  await close();
});
