import type { RunView } from "../src/api/console";
import type { RunSummary } from "../src/api/openapi";

export function summary(now: number, fields?: Partial<RunSummary>): RunSummary;
export function demoView(now: number): RunView;
export function bigView(now: number, n?: number): RunView;
export function hostileView(now: number): RunView;
