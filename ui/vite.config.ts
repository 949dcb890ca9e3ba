import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

/** The server that `npm run dev` passes API requests to. */
const server = process.env.WINDLASS_URL ?? "http://127.0.0.1:8070";
const passed = ["/api", "/openapi.json", "/docs", "/healthz", "/readyz"];

const proxy = Object.fromEntries(passed.map((path) => [path, { target: server, changeOrigin: true, headers: { origin: server } }]));

export default defineConfig({
  base: "/ui/",
  plugins: [react()],
  server: { port: 5173, proxy },
  preview: { port: 4173, proxy },
  worker: { format: "es", rolldownOptions: { output: { entryFileNames: "assets/[name].js" } } },
  build: {
    outDir: "../crates/server/ui-dist",
    emptyOutDir: true,
    target: "es2023",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 900,
    rolldownOptions: {
      output: {
        // Stable names: a rebuild changes contents, not the list of files. The server answers with an ETag.
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
  test: { environment: "happy-dom", include: ["src/**/*.test.{ts,tsx}"], globals: false },
});
