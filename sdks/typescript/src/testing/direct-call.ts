/** Calls of handlers without a server. */
import { Call, type CallFields } from "../call.ts";
import { type Outcome, outcomeOf } from "../outcome.ts";
import { type Handler, localFields } from "../service.ts";

/** Fields of the call that the handler receives; `canceled` aborts its signal before it begins. */
export interface CallOptions extends Partial<Omit<CallFields, "call" | "input">> {
  /** The id for a report. */
  id?: string;
  canceled?: boolean;
}

/** Any handler or service. */
type AnyHandler = Handler<any, any> | ((input: any, call?: Call) => unknown);

/**
 * Calls a handler or a service as a worker does, and returns the outcome: `done` with its result, `suspended` with its
 * memo, or `failed` with its error. Nothing is thrown.
 *
 * ```ts
 * const end = await call(render, { text: "a" }, { memo: { job: 7 }, attempt: 2 });
 * ```
 */
export function call(handler: AnyHandler, input?: unknown, options: CallOptions = {}): Promise<Outcome> {
  const { id, canceled, ...fields } = options;
  const service = fields.service ?? ("service" in handler ? String(handler.service) : handler.name || "handler");
  const made = new Call({ ...localFields(service), ...fields, ...(id && { call: id }) });
  if (canceled) made.stop("canceled");
  return outcomeOf(made, () => (handler as (input: unknown, call: Call) => unknown)(input, made));
}

