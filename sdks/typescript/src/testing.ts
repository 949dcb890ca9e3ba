/** The test kit: a real server for a test, workers in it, and handlers without a server. */
export { call, type CallOptions } from "./testing/direct-call.ts";
export { Server, type ServerOptions } from "./testing/server.ts";
