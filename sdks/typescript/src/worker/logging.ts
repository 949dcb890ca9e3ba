/** The messages of workers for the people who run them. */
import type { LogLevel } from "./messages.ts";

/** Takes the messages of a worker. */
export type WorkerLog = (level: LogLevel, message: string) => void;

/** Writes to stderr, each message on a line. */
export const logToStderr: WorkerLog = (level, message) => {
  process.stderr.write(`windlass ${level === "info" ? "" : `${level}: `}${message}\n`);
};
