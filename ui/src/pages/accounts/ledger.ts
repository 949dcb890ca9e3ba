// The ledger as a file.
import type { LedgerEntry } from "../../api/openapi";

const COLUMNS = ["seq", "at", "kind", "amount", "balance_after", "borne_by_platform", "run", "node", "task", "key"] as const;

/** A value as a field of CSV. A leading sign that a spreadsheet would take for a formula gets an apostrophe. */
export function csvField(value: unknown): string {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

export function ledgerCsv(entries: LedgerEntry[]): string {
  return [COLUMNS.join(","), ...entries.map((entry) => COLUMNS.map((column) => csvField(entry[column])).join(","))].join("\r\n");
}
