/** Types that users see; `npm run check` compiles this file and runs nothing. */
import { App, Call, Flow, type JobHandle, type Reference, type Suspended } from "windlass";
import { call, Server } from "windlass/testing";
import { z } from "zod";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <_A extends true>(): void => {};

const app = new App();

const resize = app.service("resize", { input: z.object({ file: z.string(), width: z.number().default(80) }) }, (input, made) => {
  same<Equal<typeof input, { file: string; width: number }>>();
  same<Equal<typeof made, Call>>();
  return `${input.file}@${input.width}`;
});
const job = await resize.send({ file: "cat.png" }, { retry: { max: 3 }, dedup_key: "cat" });
same<Equal<typeof job, JobHandle<string>>>();
const result = await job.wait();
same<Equal<typeof result, string>>();
// @ts-expect-error the input has a file
await resize.send({ width: 3 });
// @ts-expect-error there is no such field of a job
await resize.send({ file: "a" }, { retries: 3 });

const plain = app.service("plain", async (input: { n: number }) => input.n);
const direct = await plain({ n: 1 });
same<Equal<typeof direct, number | Suspended>>();
// @ts-expect-error n is a number
await plain.send({ n: "1" });

const suspending = app.service("suspending", async (_: string, made) => (made.memo ? Math.random() : made.suspend({ a: 1 }, { recheckMs: 5 })));
same<Equal<Awaited<ReturnType<Awaited<ReturnType<typeof suspending.send>>["wait"]>>, number>>();

const flow = new Flow("f");
const node = flow.call("a", resize, { file: flow.var.file });
same<Equal<typeof node.output, Reference>>();
flow.end({ url: node.output.urls[0] }, { after: [node, node.when(true)] });

const end = await call(resize, { file: "a" }, { memo: 1, attempt: 2 });
same<Equal<typeof end.outcome, "done" | "suspended" | "failed">>();
await using server = await Server.start();
server.work(app, { slots: 4 });
