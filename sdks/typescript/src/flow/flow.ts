/** The builder of flows: it produces a plain definition in the dag form, and has no logic of its own. */
import type { Client } from "../client.ts";
import type { AppliedFlow } from "../client/flows.ts";
import { NotFoundError } from "../errors.ts";
import { changes, type JsonChange } from "../json.ts";
import type { Validation } from "../openapi.ts";
import { plain, reference, type Reference } from "./reference.ts";

export interface VariableDefinition {
  type: "string" | "number" | "boolean" | "url" | "object" | "array";
  required?: boolean;
  defaultValue?: unknown;
}

export interface FlowOptions {
  title?: string;
  description?: string;
  /** The declared variables; `flow.var.NAME` refers to one. */
  variables?: Record<string, VariableDefinition>;
  /** `stop` (default): a failure fails the run at once; `continue`: independent nodes finish first. */
  on_failure?: "stop" | "continue";
  /** The account that pays for runs without one. */
  account?: string;
}

/** A predecessor: a node, or a node with the condition under which its edge is followed. */
export type Predecessor = FlowNode | { node: FlowNode; condition: string };

/** Fields of a node beside its type and its config, with the names of the dag form. */
export interface NodeOptions {
  /** The predecessors; default: the nodes that the config reads. */
  after?: Predecessor | Predecessor[];
  title?: string;
  retry?: { max?: number; delay_ms?: number; backoff?: "fixed" | "exponential" };
  timeout_ms?: number;
  exec_type?: "queue" | "http" | "local_func";
  join?: "any_settled";
  cost?: unknown;
  recheck_ms?: number;
  until_reported?: boolean;
  at_most_once?: boolean;
}

/** A node of a flow. */
export class FlowNode {
  /** The result of the node; properties and indexes of it are references too. */
  readonly output: Reference;
  readonly error: Reference;
  readonly status: Reference;

  constructor(readonly id: string) {
    this.output = reference(`$node.${id}.output`, id);
    this.error = reference(`$node.${id}.error`, id);
    this.status = reference(`$node.${id}.status`, id);
  }

  /** The edge that is followed if the condition holds; `true` and `false` are the answers of a condition node. */
  when(condition: boolean | string): Predecessor {
    return { node: this, condition: String(condition) };
  }
}

interface Edge {
  source: string;
  target: string;
  condition?: string;
}

/** A value in a config: JSON with references in it. */
export type ConfigValue = Record<string, unknown>;

/**
 * Builds a flow.
 *
 * ```ts
 * const poster = new Flow("poster", { variables: { text: { type: "string", required: true } } });
 * const render = poster.call("render", "image_render", { text: poster.var.text });
 * poster.end({ url: render.output.urls[0] });
 * await poster.publish(client);
 * ```
 */
export class Flow {
  /** References to the variables of the run. */
  readonly var: Reference;
  readonly #nodes: (Record<string, unknown> & { id: string })[] = [];
  readonly #edges: Edge[] = [];

  constructor(readonly name: string, private readonly options: FlowOptions = {}) {
    this.var = reference("$var");
  }

  /** A node of any type: a kind of the server, or else the name of a service. */
  node(id: string, type: string, config: ConfigValue = {}, options: NodeOptions = {}): FlowNode {
    if (this.#nodes.some((node) => node.id === id)) throw new Error(`flow \`${this.name}\` has two nodes \`${id}\`: rename one`);
    const { after, ...fields } = options;
    const reads = new Set<string>();
    const written = plain(config, (node) => reads.add(node)) as ConfigValue;
    const others = plain(fields, () => {}) as Record<string, unknown>;
    this.#nodes.push({ id, type, ...(Object.keys(written).length === 0 ? {} : { config: written }), ...others });
    const given = after === undefined ? undefined : [after].flat();
    const edges = given?.map((one) => edgeOf(one, id)) ?? [...reads].map((source): Edge => ({ source, target: id }));
    for (const edge of edges) {
      if (!this.#nodes.some((node) => node.id === edge.source)) {
        throw new Error(`\`${id}\` reads or follows \`${edge.source}\`, which is no node of flow \`${this.name}\``);
      }
      this.#edges.push(edge);
    }
    return new FlowNode(id);
  }

  /** Calls a service with `config` as its params and, unless it has a field `input`, as its input. */
  call(id: string, service: string | { service: string }, config: ConfigValue = {}, options: NodeOptions = {}): FlowNode {
    return this.node(id, typeof service === "string" ? service : service.service, config, options);
  }

  /** Evaluates an expression; its successors follow `node.when(true)` or `node.when(false)`. */
  condition(id: string, expression: string, options: NodeOptions = {}): FlowNode {
    return this.node(id, "condition", { expression }, options);
  }

  /** Waits for a time. */
  delay(id: string, delayMs: number | Reference, options: NodeOptions = {}): FlowNode {
    return this.node(id, "delay", { delay_ms: delayMs }, options);
  }

  /** Waits for a signal; its value is the output. */
  signal(id: string, key: string, options: NodeOptions & { waitMs?: number } = {}): FlowNode {
    const { waitMs, ...rest } = options;
    const params = { signal_key: key, ...(waitMs === undefined ? {} : { timeout_ms: waitMs }) };
    return this.node(id, "wait_event", { params }, rest);
  }

  /** Waits for the decision of a person; the decision is the output. */
  approval(id: string, params: { assignees?: string[]; form?: unknown } = {}, options: NodeOptions = {}): FlowNode {
    return this.node(id, "approval", { params }, options);
  }

  /** Starts another flow as a child run; its result is the output. */
  run(id: string, flow: string | Flow, params: ConfigValue = {}, options: NodeOptions = {}): FlowNode {
    return this.node(id, "flow_ref", { flow: typeof flow === "string" ? flow : flow.name, params }, options);
  }

  /** Ends the flow with a result; without `after` it follows the nodes that the outputs read. */
  end(outputs: Record<string, unknown> = {}, options: NodeOptions = {}): FlowNode {
    const list = Object.entries(outputs).map(([name, source]) => ({ name, source }));
    return this.node("end", "end", { outputs: list }, options);
  }

  /** The definition, as `POST /api/v1/flows` takes it. */
  definition(): Record<string, unknown> {
    return structuredClone({ ...this.options, nodes: this.#nodes, edges: this.#edges });
  }

  /** All problems that the server finds, without publishing. */
  validate(client: Client): Promise<Validation> {
    return client.flows.validate({ definition: this.definition() });
  }

  /** Publishes the flow, or its next version; nothing if the newest version is the same. */
  publish(client: Client): Promise<AppliedFlow> {
    return client.flows.apply(this.name, this.definition());
  }

  /** The differences between the newest published version and this definition; one change at `` if there is none yet. */
  async diff(client: Client): Promise<JsonChange[]> {
    try {
      const newest = await client.flows.newest(this.name);
      return [...changes(newest?.definition, this.definition())];
    } catch (error) {
      if (error instanceof NotFoundError) return [{ path: "", kind: "added", after: this.definition() }];
      throw error;
    }
  }
}

function edgeOf(predecessor: Predecessor, target: string): Edge {
  if (predecessor instanceof FlowNode) return { source: predecessor.id, target };
  return { source: predecessor.node.id, target, condition: predecessor.condition };
}
