/** A push worker: the server calls it. With a secret, it refuses calls that are not signed by the server. */
import { App } from "windlass";

const app = new App();
app.service("shout", async (input: string) => input.toUpperCase());

// WINDLASS_PUSH_SECRET=whsec_… checks signatures; in a server of your own, mount app.fetchHandler() or app.nodeHandler().
await app.serve({ url: process.env.WORKER_URL ?? "http://127.0.0.1:9000" });
