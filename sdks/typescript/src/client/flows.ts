/** Flows: publishing, reading, validating and comparing them. */
import { ConflictError } from "../errors.ts";
import type {
  CompareVersionsQuery, Definition, ExpandResponse, FlowDetail, FlowDiff, FlowInfo, FlowRequest, InstantiateRequest,
  List, ListFlowsQuery, PublishResponse, Validation, Version, VersionRequest, VersionSummary,
} from "../openapi.ts";
import { follow } from "../pages.ts";
import { isSame } from "../json.ts";
import type { Transport } from "../transport.ts";

/** The version of a flow after `apply`; `isNew` is false if the newest version had this definition already. */
export interface AppliedFlow {
  name: string;
  version: number;
  isNew: boolean;
}

export class Flows {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Publishes a flow with its first version; `ConflictError` if the name is taken. */
  create(flow: FlowRequest): Promise<PublishResponse> {
    return this.#transport.call("POST /api/v1/flows", { body: flow });
  }

  /** Publishes the next version of a flow. */
  createVersion(flow: string, version: VersionRequest): Promise<PublishResponse> {
    return this.#transport.call("POST /api/v1/flows/{flow}/versions", { path: { flow }, body: version });
  }

  /** Publishes a definition under a name: as a new flow, as the next version, or not at all if nothing differs. */
  async apply(name: string, definition: Record<string, unknown>): Promise<AppliedFlow> {
    try {
      const made = await this.create({ name, definition });
      return { name, version: made.version, isNew: true };
    } catch (error) {
      if (!(error instanceof ConflictError) || error.code !== "name_taken") throw error;
    }
    const newest = await this.newest(name);
    if (newest && isSame(newest.definition, definition)) return { name, version: newest.version, isNew: false };
    const made = await this.createVersion(name, { definition });
    return { name, version: made.version, isNew: true };
  }

  /** The newest version of a flow with its definition. */
  async newest(flow: string): Promise<Version | undefined> {
    const [newest] = (await this.versions(flow)).items;
    return newest && this.version(flow, newest.version);
  }

  /** A flow with its newest published version. */
  get(flow: string): Promise<FlowDetail> {
    return this.#transport.call("GET /api/v1/flows/{flow}", { path: { flow } });
  }

  /** A page of flows, newest first. */
  list(query: ListFlowsQuery = {}): Promise<List<FlowInfo>> {
    return this.#transport.call("GET /api/v1/flows", { query });
  }

  /** All flows, page after page. */
  all(query: ListFlowsQuery = {}): AsyncGenerator<FlowInfo, void, undefined> {
    return follow((cursor) => this.list({ limit: 1_000, ...query, cursor }));
  }

  /** The versions of a flow, newest first. */
  versions(flow: string): Promise<List<VersionSummary>> {
    return this.#transport.call("GET /api/v1/flows/{flow}/versions", { path: { flow } });
  }

  /** One version with its definition. */
  version(flow: string, version: number): Promise<Version> {
    return this.#transport.call("GET /api/v1/flows/{flow}/versions/{version}", { path: { flow, version } });
  }

  /** The changes between two versions; default: the last two. */
  diff(flow: string, query: CompareVersionsQuery = {}): Promise<FlowDiff> {
    return this.#transport.call("GET /api/v1/flows/{flow}/diff", { path: { flow }, query });
  }

  /** All problems of a definition, without publishing it. */
  validate(definition: Definition): Promise<Validation> {
    return this.#transport.call("POST /api/v1/flows/validate", { body: definition, isRepeatable: true });
  }

  /** The tasks of a definition in the steps form. */
  expand(definition: Definition): Promise<ExpandResponse> {
    return this.#transport.call("POST /api/v1/flows/expand", { body: definition, isRepeatable: true });
  }

  /** Publishes a flow of a template. */
  instantiate(template: string, request: InstantiateRequest): Promise<PublishResponse> {
    return this.#transport.call("POST /api/v1/flows/{flow}/instantiate", { path: { flow: template }, body: request });
  }
}
