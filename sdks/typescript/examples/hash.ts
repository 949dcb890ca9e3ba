/** Handlers that compute run in threads: the worker stays free, and a cancel or a time limit ends the thread. */
import { createHash } from "node:crypto";
import { App } from "windlass";

const app = new App({ module: import.meta.url });

app.service("hash", { thread: true, slots: 2 }, (input: { text: string; rounds: number }, call) => {
  let text = input.text;
  for (let n = 0; n < input.rounds; n += 1) {
    if (n % 1_000 === 0) call.check();
    text = createHash("sha256").update(text).digest("hex");
  }
  return text;
});

// Threads load this module too; app.run() returns there at once.
await app.run();
