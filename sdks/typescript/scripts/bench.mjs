// Measures one worker process with handlers that do nothing: jobs a second from a full queue, and the processor time of
// the worker for each job.
//
//   WINDLASS=path/to/windlass node scripts/bench.mjs [JOBS] [SLOTS]
import { App } from "windlass";
import { Server } from "windlass/testing";

const [nJobs = 20_000, slots = 500] = process.argv.slice(2).map(Number);
const BATCH = 2_000;

const server = await Server.start();
const app = new App({ client: server.client });
let nEnded = 0;
let allEnded;
const done = new Promise((resolve) => { allEnded = resolve; });
app.service("noop", async () => {
  nEnded += 1;
  if (nEnded === nJobs) allEnded();
});
for (let made = 0; made < nJobs; made += BATCH) {
  const jobs = Array.from({ length: Math.min(BATCH, nJobs - made) }, (_, n) => ({ name: "noop", queue: "bench", payload: { n } }));
  await server.client.jobs.createBatch(jobs);
}
const worker = app.worker({ slots, log: () => {} });
const cpu = process.cpuUsage();
const begun = performance.now();
const running = worker.run();
await done;
worker.stop();
await running;
const seconds = (performance.now() - begun) / 1_000;
const { user, system } = process.cpuUsage(cpu);
const perJob = (user + system) / nJobs;
console.log(`${nJobs} jobs, ${slots} slots: ${Math.round(nJobs / seconds)} jobs/s, ${perJob.toFixed(1)} us of the worker's processor time for each job`);
await server.close();
