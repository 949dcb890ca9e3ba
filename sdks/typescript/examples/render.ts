/** Work that goes on at a provider: the call is suspended, so it holds no worker, and a recheck or a report ends it. */
import { App, Flow } from "windlass";

const app = new App();

interface Memo {
  job: string;
  polls: number;
}

// The server calls again after 200 ms, with the memo.
const render = app.service("render", async (_input, call) => {
  const memo = call.memo as Memo | undefined;
  if (memo === undefined) return call.suspend({ job: `provider-${call.key}`, polls: 0 }, { recheckMs: 200 });
  if (memo.polls < 2) return call.suspend({ ...memo, polls: memo.polls + 1 }, { recheckMs: 200 });
  return { urls: ["asset://film.mp4"], polls: memo.polls };
});

// The provider tells the end itself, under the id of the call.
const print = app.service("print", async (_input, call) => {
  setTimeout(() => void app.client.calls.report(call.id ?? "", { result: "poster-1" }), 500);
  return call.suspend({ printer: 7 });
});

const poster = new Flow("poster", { variables: { title: { type: "string", required: true } } });
const film = poster.call("film", render, { title: poster.var.title });
const paper = poster.call("paper", print, { file: film.output.urls[0] }, { until_reported: true });
poster.end({ film: film.output.urls[0], paper: paper.output });

console.log("published:", await poster.publish(app.client));
const worker = app.worker();
const running = worker.run();
const run = await app.client.runs.start("poster", { params: { title: "Harbour" } });
for await (const entry of run.follow()) {
  console.log("entry", entry.seq, entry.events.map((event) => event.e).join(", "));
}
console.log("result:", await run.result());

worker.stop();
await running;
