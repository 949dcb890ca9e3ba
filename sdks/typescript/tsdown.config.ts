import { defineConfig } from "tsdown";

export default defineConfig([
  {
    entry: ["src/index.ts", "src/testing.ts"],
    format: ["esm", "cjs"],
    platform: "node",
    target: "node20",
    dts: true,
    outExtensions: ({ format }) => (format === "cjs" ? { js: ".cjs", dts: ".d.cts" } : { js: ".mjs", dts: ".d.mts" }),
  },
  {
    // Programs of their own: the command, and the entry points of the threads that a worker starts.
    entry: {
      command: "src/command.ts",
      "link-thread": "src/worker/link-thread.ts",
      "handler-thread": "src/worker/handler-thread.ts",
    },
    format: ["esm"],
    platform: "node",
    target: "node20",
    dts: false,
    clean: false,
    outExtensions: () => ({ js: ".mjs" }),
  },
]);
