/** A producer, a worker and the end of a job, as a program of BullMQ has them. */
import { App, Fatal } from "windlass";

const app = new App();

const thumbnail = app.service("thumbnail", { queue: "pictures", slots: 5 }, async (input: { file: string }, call) => {
  if (!input.file.endsWith(".png")) throw new Fatal(`${input.file} is no picture`);
  call.log.info("half done", { percent: 50 });
  return { thumbnail: input.file.replace(".png", ".small.png") };
});

const worker = app.worker();
const running = worker.run();

const job = await thumbnail.send({ file: "cat.png" }, {
  run_at: new Date(Date.now() + 500).toISOString(),
  retry: { max: 4, delay_ms: 1_000 },
  dedup_key: "thumbnail-cat.png",
});
console.log("made:", await job.wait({ timeoutMs: 30_000 }));

worker.stop();
await running;
