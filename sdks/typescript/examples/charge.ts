/** Typed input, errors that tell whether a retry helps, and the idempotency key for a provider. */
import { App, Fatal, Temporary } from "windlass";
import { z } from "zod";

const app = new App();

const Charge = z.object({ card: z.string(), cents: z.number().int().positive() });

const charge = app.service("charge", { input: Charge, slots: 4 }, async (input, call) => {
  const answer = await provider(input, { idempotencyKey: call.key, signal: call.signal });
  call.log.info("asked the provider", { status: answer.status, attempt: call.attempt });
  if (answer.status === 402) throw new Fatal("the card was declined");
  if (answer.status === 503) throw new Temporary("the provider is busy", { retryAfterMs: 200 });
  return { receipt: answer.receipt };
});

/** Stands for a payment provider: the first request is too many, and one card has no money. */
let nRequests = 0;
async function provider(what: z.infer<typeof Charge>, options: { idempotencyKey: string; signal: AbortSignal }) {
  options.signal.throwIfAborted();
  nRequests += 1;
  if (what.card === "empty") return { status: 402, receipt: "" };
  return nRequests === 1 ? { status: 503, receipt: "" } : { status: 200, receipt: `R-${options.idempotencyKey.slice(-4)}` };
}

const worker = app.worker();
const running = worker.run();

const job = await charge.send({ card: "full", cents: 1_500 }, { retry: { max: 3, delay_ms: 100 } });
console.log("charged:", await job.wait({ timeoutMs: 30_000 }));
await charge.send({ card: "full", cents: 0.5 }).catch((error: Error) => console.log("not sent:", error.message));
const declined = await charge.send({ card: "empty", cents: 1 });
await declined.wait({ timeoutMs: 30_000 }).catch((error: Error) => console.log("failed:", error.message));

worker.stop();
await running;
