// The routes. Each page is a chunk of its own.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { NotLoadedError } from "../parts/Errors";
import { Missing } from "./Missing";
import { parseSearch, writeSearch } from "./search";
import { Shell } from "./Shell";

const root = createRootRoute({ component: Shell, notFoundComponent: Missing });

type Page = () => Promise<Record<string, any>>;

/** The router answers a failed import by loading the page again, which shows an empty page while the server is down. */
const loaded = (load: Page): Page => () => load().catch((error: unknown) => { throw new NotLoadedError(String(error)); });

function page<const P extends string>(path: P, load: Page, name: string) {
  return createRoute({ getParentRoute: () => root, path, component: lazyRouteComponent(loaded(load), name) });
}

const routes = root.addChildren([
  page("/", () => import("../pages/overview/OverviewPage"), "OverviewPage"),
  page("/runs", () => import("../pages/runs/RunsPage"), "RunsPage"),
  page("/runs/$run", () => import("../pages/run/RunPage"), "RunPage"),
  page("/start", () => import("../pages/start/StartPage"), "StartPage"),
  page("/bulk", () => import("../pages/bulk/BulkPage"), "BulkPage"),
  page("/bulk/$bulk", () => import("../pages/bulk/BulkPage"), "BulkDetailPage"),
  page("/flows", () => import("../pages/flows/FlowsPage"), "FlowsPage"),
  page("/flows/$flow", () => import("../pages/flows/FlowPage"), "FlowPage"),
  page("/editor", () => import("../pages/editor/EditorPage"), "EditorPage"),
  page("/queues", () => import("../pages/queues/QueuesPage"), "QueuesPage"),
  page("/queues/$queue", () => import("../pages/queues/QueuePage"), "QueuePage"),
  page("/jobs/$job", () => import("../pages/jobs/JobPage"), "JobPage"),
  page("/dead-letters", () => import("../pages/dead-letters/DeadLettersPage"), "DeadLettersPage"),
  page("/workers", () => import("../pages/workers/WorkersPage"), "WorkersPage"),
  page("/schedules", () => import("../pages/schedules/SchedulesPage"), "SchedulesPage"),
  page("/schedules/$schedule", () => import("../pages/schedules/SchedulePage"), "SchedulePage"),
  page("/approvals", () => import("../pages/approvals/ApprovalsPage"), "ApprovalsPage"),
  page("/accounts", () => import("../pages/accounts/AccountsPage"), "AccountsPage"),
  page("/accounts/$account", () => import("../pages/accounts/AccountPage"), "AccountPage"),
  page("/audit", () => import("../pages/audit/AuditPage"), "AuditPage"),
  page("/settings", () => import("../pages/settings/SettingsPage"), "SettingsPage"),
]);

export const router = createRouter({
  routeTree: routes,
  basepath: "/ui",
  parseSearch,
  stringifySearch: writeSearch,
  defaultPreload: "intent",
  scrollRestoration: true,
});
