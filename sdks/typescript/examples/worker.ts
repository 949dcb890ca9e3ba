/** A worker in five lines. Run it, then: windlass job create greet --payload '{"name": "Ada"}' --wait */
import { App } from "windlass";

const app = new App(); // WINDLASS_SERVER, WINDLASS_KEY
app.service("greet", async (input: { name: string }) => `hello, ${input.name}`);
await app.run();
