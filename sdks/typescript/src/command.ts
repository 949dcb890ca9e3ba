#!/usr/bin/env node
/** The command `windlass-worker`. */
import { parseArguments, usage } from "./command/arguments.ts";
import { reload } from "./command/reload.ts";
import { runModule } from "./command/run-module.ts";

/** The exit code of wrong arguments. */
const USAGE = 2;

async function main(): Promise<void> {
  const parsed = parseArguments(process.argv.slice(2));
  if ("help" in parsed) return void process.stdout.write(usage);
  if ("wrong" in parsed) {
    process.stderr.write(`windlass-worker: ${parsed.wrong}\n${usage}`);
    process.exit(USAGE);
  }
  if (parsed.reload) return reload(parsed);
  await runModule(parsed);
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`windlass-worker: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  },
);
