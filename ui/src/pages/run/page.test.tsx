import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, createRootRoute, createRoute, createRouter, RouterProvider } from "@tanstack/react-router";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { demoView, hostileView } from "../../../e2e/fixtures.mjs";
import type { RunView } from "../../api/console";
import { parseSearch, writeSearch } from "../../app/search";
import { changeSettings } from "../../format/settings";
import { RunPage } from "./RunPage";

const requests: { method: string; url: string; body: unknown }[] = [];

/** A server with one run; everything else is unknown. */
function serve(view: RunView) {
  requests.length = 0;
  vi.stubGlobal("fetch", async (url: string, init: RequestInit = {}) => {
    requests.push({ method: init.method ?? "GET", url, body: typeof init.body === "string" ? JSON.parse(init.body) : undefined });
    if (url.endsWith("/view")) return new Response(JSON.stringify(view));
    if (init.method === "POST") return new Response(JSON.stringify(view.run));
    return new Response(JSON.stringify({ code: "unknown_route", detail: "nothing here" }), { status: 404 });
  });
}

function openPage(address = "/runs/run_1") {
  const root = createRootRoute();
  const route = createRoute({ getParentRoute: () => root, path: "/runs/$run", component: RunPage });
  const router = createRouter({ routeTree: root.addChildren([route]), history: createMemoryHistory({ initialEntries: [address] }), parseSearch, stringifySearch: writeSearch });
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  return render(<QueryClientProvider client={client}><RouterProvider router={router as never} /></QueryClientProvider>);
}

beforeEach(() => {
  // The stream is not the matter of these tests.
  vi.stubGlobal("SharedWorker", class { port = { start: () => undefined, postMessage: () => undefined, onmessage: null }; });
  HTMLDialogElement.prototype.showModal = function showModal() { this.open = true; };
});
afterEach(() => {
  cleanup();
  changeSettings({ language: "en" });
  vi.unstubAllGlobals();
});

test("the page says why the run waits, and offers the way on", async () => {
  serve(demoView(Date.now()));
  const { container } = openPage();
  await screen.findByRole("heading", { name: /digital-human/ });
  expect(container.querySelector("[data-why=retry]")?.textContent).toMatch(/^Retry 2 of video_motion in \d+\.\d s after HTTP 503/);
  expect(container.querySelectorAll("[data-node]").length).toBe(11);
  expect(container.querySelector('[data-node="fan_out/rights"]')?.getAttribute("data-status")).toBe("waiting");
  const [button] = screen.getAllByText("Send signal…");
  if (button) fireEvent.click(button);
  fireEvent.submit(screen.getByRole("dialog", { hidden: true }).querySelector("form") as HTMLFormElement);
  await waitFor(() => expect(requests.some((request) => request.method === "POST")).toBe(true));
  expect(requests.find((request) => request.method === "POST")).toMatchObject({ url: "/api/v1/runs/run_01a1e2f47664700080000000000089e7/signal", body: { key: "rights.cleared", value: {} } });
});

test("the same page in Chinese keeps node keys and codes", async () => {
  changeSettings({ language: "zh" });
  serve(demoView(Date.now()));
  const { container } = openPage();
  await screen.findByText("时间线");
  expect(container.querySelector("[data-why=retry]")?.textContent).toContain("video_motion");
  expect(container.textContent).not.toMatch(/undefined|\[object/);
});

test("hostile texts are text, and unknown words break nothing", async () => {
  serve(hostileView(Date.now()));
  const { container } = openPage("/runs/run_1?node=ingest");
  await screen.findByRole("heading", { level: 1 });
  await screen.findAllByText("quantum");
  expect(container.querySelectorAll("img, script").length).toBe(0);
  expect(screen.getByText("compensating")).toBeTruthy();
  expect((container.textContent ?? "").length).toBeLessThan(40_000);
});

test("a run that is not there is told with code and retry", async () => {
  serve(demoView(Date.now()));
  vi.stubGlobal("fetch", async () => new Response(JSON.stringify({ code: "unknown_run", detail: "there is no run `run_1`", request_id: "req_1" }), { status: 404 }));
  openPage();
  expect(await screen.findByText("unknown_run")).toBeTruthy();
  expect(document.body.textContent).toContain("req_1");
  expect(screen.getByText("Retry")).toBeTruthy();
});
