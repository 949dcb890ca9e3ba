// Helpers of the end-to-end tests: a Chromium, pages in a theme, a language and a width, and checks that every page
// must pass.
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { chromium } from "playwright-core";

export const WIDE = { width: 1400, height: 900 };
export const PHONE = { width: 375, height: 812 };

/** The path of a program: as it is given, or where PATH has it. */
function executable(name) {
  if (name.includes("/")) return name;
  const directory = (process.env.PATH ?? "").split(delimiter).find((one) => existsSync(join(one, name)));
  return directory ? join(directory, name) : name;
}

/** Starts the Chromium of this machine; `CHROMIUM` names another one. */
export function launch() {
  return chromium.launch({
    executablePath: executable(process.env.CHROMIUM ?? "chromium"),
    // Root has no sandbox in a container; shared memory is small there.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
  });
}

/** Opens a page; `problems` collects every error of the console and every uncaught exception. */
export async function open(browser, { theme = "light", language = "en", size = WIDE, zone = "UTC" } = {}) {
  const context = await browser.newContext({
    viewport: size, colorScheme: theme, locale: language === "zh" ? "zh-CN" : "en-US", timezoneId: zone, hasTouch: size.width < 500,
  });
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(`exception: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(`console: ${message.text()} (${message.location().url})`);
  });
  return { context, page, problems };
}

const require = createRequire(import.meta.url);

/** The serious and critical findings of axe on the page as it is. */
export async function axe(page) {
  // The policy of the page forbids inline scripts; the debugger's own evaluation is not one.
  await page.evaluate(readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 5).map((node) => `${node.target.join(" ")} ${node.failureSummary ?? ""}`).join(" | ")}`);
}

/** Whether the page is wider than its window. */
export function overflows(page) {
  return page.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1);
}
