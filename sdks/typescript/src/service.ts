/** Services: handlers with a name, a schema, and limits. They stay callable as plain functions. */
import { Call, type CallFields, Suspended } from "./call.ts";
import type { JobHandle } from "./client/jobs.ts";
import type { NewJob } from "./openapi.ts";
import { type Outcome, outcomeOf } from "./outcome.ts";
import { check, type StandardSchema } from "./schema.ts";

/** A function that answers calls. Its value is the result; `call.suspend(memo)` suspends the call. */
export type Handler<Input, Result> = (input: Input, call: Call) => Result | Suspended | Promise<Result | Suspended>;

export interface ServiceOptions<Input = any, Checked = any> {
  /** The schema of the input. A wrong input is refused before the handler runs, and costs no retry. */
  input?: StandardSchema<Input, Checked>;
  /** The schema of the result. A wrong result fails the call for good. */
  output?: StandardSchema;
  /** Calls of this service at once in this worker; default: it shares the slots of the worker. */
  slots?: number;
  /** Runs each call in a thread of its own, for handlers that compute. The thread ends when the call is canceled. */
  thread?: boolean;
  /** The queue of `send`; default: `default`. */
  queue?: string;
}

/** Fields of a job that `send` takes; the service gives the name and the payload. */
export type SendOptions = Partial<Omit<NewJob, "name" | "payload">>;

/** Creates the jobs of `send`; the client of the app does it. */
export type JobCreator = (job: NewJob) => Promise<JobHandle>;

/** A service: call it as the function that it is, or `send` a job to its workers. */
export interface Service<Input, Result> {
  (input: Input, call?: Call): Promise<Result | Suspended>;
  readonly service: string;
  /** Creates a job for the workers of this service; the input is checked first. */
  send(input: Input, options?: SendOptions): Promise<JobHandle<Result>>;
}

/** Whether a definition is called by the name of a service, or takes every job of a queue. */
export type ServiceKind = "service" | "queue";

/** A service as a worker sees it. */
export class ServiceDefinition {
  constructor(
    readonly kind: ServiceKind, readonly name: string, readonly options: ServiceOptions,
    private readonly handler: Handler<any, unknown>,
  ) {
    const { slots } = options;
    if (slots !== undefined && !(Number.isInteger(slots) && slots >= 1)) {
      throw new RangeError(`service \`${name}\`: slots is ${slots}; write a whole number from 1`);
    }
  }

  /** Checks the input, calls the handler, checks the result. */
  async call(input: unknown, call: Call): Promise<unknown> {
    const { input: schema, output } = this.options;
    const checked = schema === undefined ? input : await check(schema, input, `the input of \`${this.name}\``);
    const result = await this.handler(checked, call);
    if (output === undefined || result instanceof Suspended) return result;
    return check(output, result ?? null, `the result of \`${this.name}\``);
  }

  /** Answers a call of a server; it never throws. */
  answer(call: Call, input: unknown): Promise<Outcome> {
    return outcomeOf(call, () => this.call(input, call));
  }

  /** The callable form. */
  callable(create: JobCreator): Service<any, any> {
    const direct = (input: unknown, call: Call = new Call(localFields(this.name))) => this.call(input, call);
    const send = async (input: unknown, options: SendOptions = {}) => {
      const { input: schema, queue = "default" } = this.options;
      if (schema !== undefined) await check(schema, input, `the input of \`${this.name}\``);
      return create({ queue, ...options, name: this.name, payload: input ?? null });
    };
    return Object.assign(direct, { service: this.name, send }) as Service<any, any>;
  }
}

/** The fields of a call that no server made. */
export function localFields(service: string): CallFields {
  return { service, key: `local/${service}`, attempt: 1 };
}

