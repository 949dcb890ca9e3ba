/** Runs the worker in a child process, and a new one when a file changes. The old one lets its open calls end. */
import { type ChildProcess, spawn } from "node:child_process";
import { watch } from "node:fs";
import { dirname, resolve } from "node:path";
import type { CommandArguments } from "./arguments.ts";

/** Editors write a file several times. */
const SETTLE_MS = 150;
const SOURCE = /\.(m|c)?(j|t)sx?$|\.json$/;

export function reload({ module }: CommandArguments): Promise<void> {
  const args = process.argv.slice(1).filter((one) => one !== "--reload");
  const directory = dirname(resolve(module));
  let isStopping = false;
  let timer: NodeJS.Timeout | undefined;
  const start = () => spawn(process.execPath, [...process.execArgv, ...args], { stdio: "inherit" });
  return new Promise((done) => {
    let child: ChildProcess = start();
    let isAlive = true;
    const ended = () => {
      isAlive = false;
      if (isStopping) done();
      else process.stderr.write("windlass the worker ended; it starts again when a file changes\n");
    };
    child.once("exit", ended);
    const restart = () => {
      process.stderr.write("windlass a file changed: the worker starts again\n");
      if (isAlive) {
        // The new worker takes jobs while the old one drains.
        child.off("exit", ended);
        child.kill("SIGTERM");
      }
      child = start();
      isAlive = true;
      child.once("exit", ended);
    };
    const watcher = watch(directory, { recursive: true }, (_, file) => {
      if (isStopping || !file || file.includes("node_modules") || !SOURCE.test(file)) return;
      clearTimeout(timer);
      timer = setTimeout(restart, SETTLE_MS);
    });
    const stop = () => {
      if (isStopping) return void child.kill("SIGKILL");
      isStopping = true;
      watcher.close();
      if (isAlive) child.kill("SIGTERM");
      else done();
    };
    process.on("SIGTERM", stop);
    process.on("SIGINT", stop);
  });
}
