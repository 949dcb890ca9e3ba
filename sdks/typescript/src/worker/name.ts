/** Unique ids of workers. */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";

/** Characters of the name of this machine that are kept. */
const HOST_CHARS = 40;

/** An id that no other worker has: this machine, this process, and chance, since containers count from one. */
export function uniqueId(prefix = "worker"): string {
  const host = hostname().replace(/[^\w.-]/g, "").slice(0, HOST_CHARS) || "host";
  return `${prefix}-${host}-${process.pid}-${randomBytes(4).toString("hex")}`;
}
