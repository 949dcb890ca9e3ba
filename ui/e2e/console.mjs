// One browser and one server for the tests of a file, and pages that fail on any error of the console.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { launch, open } from "./browser.mjs";
import { Server } from "./server.mjs";

/** `it()` is the server, `visit(path, how)` opens a page of the console. `prepare` fills the server first. */
export function useConsole(prepare) {
  let server;
  let browser;
  before(async () => {
    server = await Server.start();
    browser = await launch();
    await prepare?.(server);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });
  const visit = async (path, how) => {
    const opened = await open(browser, how);
    opened.page.setDefaultTimeout(20_000);
    await opened.page.goto(`${server.url}/ui${path}`);
    await opened.page.waitForSelector("main");
    return { ...opened, close: () => opened.context.close() };
  };
  return { it: () => server, browser: () => browser, visit };
}

/** The page loaded and ran without an error. */
export function clean(problems, allowed = /^$/) {
  assert.deepEqual(problems.filter((problem) => !allowed.test(problem)), []);
}

/** Waits until nothing loads. */
export const settled = (page) => page.waitForFunction(() => document.querySelector("main") && !document.querySelector(".skeleton"));
