import { defineConfig } from "tsdown";

const library = ["src/index.ts", "src/testing.ts"];
const shared = {
  platform: "node" as const,
  target: "node20",
  dts: { entry: library, oxc: { stripInternal: true } },
  inputOptions: { checks: { pluginTimings: false } },
  // The declarations have the documentation.
  outputOptions: { comments: { jsdoc: false, annotation: true, legal: true } },
};

export default defineConfig([
  {
    ...shared,
    entry: {
      index: "src/index.ts",
      testing: "src/testing.ts",
      // Programs of their own: the command, and the entry points of the threads that a worker starts.
      command: "src/command.ts",
      "link-thread": "src/worker/link-thread.ts",
      "handler-thread": "src/worker/handler-thread.ts",
    },
    format: ["esm"],
    outExtensions: () => ({ js: ".mjs", dts: ".d.mts" }),
  },
  {
    ...shared,
    entry: library,
    format: ["cjs"],
    outExtensions: () => ({ js: ".cjs", dts: ".d.cts" }),
  },
]);
