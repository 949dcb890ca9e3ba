/** SIGTERM and SIGINT: the first lets open calls end, the second ends the process at once. */

/** Something that runs until it is stopped. */
export interface Stoppable {
  run(): Promise<void>;
  stop(): void;
}

/** The exit code of a process that a second signal ends. */
const INTERRUPTED = 130;

export async function runUntilSignal(program: Stoppable, withSignals: boolean): Promise<void> {
  if (!withSignals) return program.run();
  let isStopping = false;
  const onSignal = () => {
    if (isStopping) process.exit(INTERRUPTED);
    isStopping = true;
    program.stop();
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  try {
    await program.run();
  } finally {
    process.off("SIGTERM", onSignal);
    process.off("SIGINT", onSignal);
  }
}
