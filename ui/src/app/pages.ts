// The pages of the navigation, in its order.
import type { IconName } from "../parts/Icon";

export interface NavPage {
  id: "overview" | "runs" | "flows" | "queues" | "deadLetters" | "workers" | "schedules" | "approvals" | "accounts" | "audit" | "settings";
  path: string;
  icon: IconName;
  /** The key after `g`. */
  key?: string;
  /** Stands apart from the pages above. */
  apart?: boolean;
}

export const NAV_PAGES: NavPage[] = [
  { id: "overview", path: "/", icon: "overview", key: "o" },
  { id: "runs", path: "/runs", icon: "runs", key: "t" },
  { id: "flows", path: "/flows", icon: "flows", key: "f" },
  { id: "queues", path: "/queues", icon: "queues", key: "q" },
  { id: "deadLetters", path: "/dead-letters", icon: "letters", key: "d" },
  { id: "workers", path: "/workers", icon: "workers", key: "w" },
  { id: "schedules", path: "/schedules", icon: "schedules", key: "s" },
  { id: "approvals", path: "/approvals", icon: "approvals", key: "a" },
  { id: "accounts", path: "/accounts", icon: "accounts", apart: true },
  { id: "audit", path: "/audit", icon: "audit" },
  { id: "settings", path: "/settings", icon: "settings" },
];
