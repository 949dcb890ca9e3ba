/** The arguments of the command. */
import { parseArgs } from "node:util";

export interface CommandArguments {
  /** The module of the app. */
  module: string;
  slots?: number;
  drainMs?: number;
  leaseMs?: number;
  id?: string;
  name?: string;
  server?: string;
  reload: boolean;
}

export const usage = `Usage: windlass-worker MODULE [OPTIONS]

Runs the app that a module makes with new App(). SIGTERM or SIGINT lets open calls end first.

Options:
      --slots <N>          Calls at once [default: 64]
      --drain <SECONDS>    How long open calls may go on after the signal to stop [default: 25]
      --lease <SECONDS>    How long a claim lasts unless it is extended [default: 30]
      --id <ID>            The id of this worker [default: machine, process and chance]
      --name <NAME>        A name for people
      --server <URL>       The URL of the server [env: WINDLASS_SERVER] [default: http://127.0.0.1:8070]
      --reload             Start again when a file beside the module changes
  -h, --help               Print help

The API key comes from WINDLASS_KEY. Loaders go before: node --import tsx node_modules/.bin/windlass-worker jobs.ts
`;

const OPTIONS = {
  slots: { type: "string" }, drain: { type: "string" }, lease: { type: "string" }, id: { type: "string" },
  name: { type: "string" }, server: { type: "string" }, reload: { type: "boolean" }, help: { type: "boolean", short: "h" },
} as const;

export function parseArguments(args: string[]): CommandArguments | { wrong: string } | { help: true } {
  try {
    const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
    if (values.help) return { help: true };
    const [module, ...more] = positionals;
    if (module === undefined) return { wrong: "name the module of the app, such as ./jobs.js" };
    if (more.length > 0) return { wrong: `one module at a time: ${more.join(" ")} is too much` };
    const slots = number("--slots", values.slots);
    const drain = number("--drain", values.drain);
    const lease = number("--lease", values.lease);
    const { id, name, server } = values;
    return {
      module, reload: values.reload ?? false,
      ...(slots !== undefined && { slots }),
      ...(drain !== undefined && { drainMs: Math.round(drain * 1_000) }),
      ...(lease !== undefined && { leaseMs: Math.round(lease * 1_000) }),
      ...(id !== undefined && { id }), ...(name !== undefined && { name }), ...(server !== undefined && { server }),
    };
  } catch (error) {
    return { wrong: (error as Error).message };
  }
}

function number(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d+(\.\d+)?$/.test(text)) throw new Error(`${flag} takes a number, not \`${text}\``);
  return Number(text);
}
