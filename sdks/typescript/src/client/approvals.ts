/** Approvals: nodes that wait for the decision of a person. */
import type { ApprovalInfo, Decide, List, ListApprovalsQuery, RunSummary } from "../openapi.ts";
import { follow } from "../pages.ts";
import type { Transport } from "../transport.ts";

export class Approvals {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** A page of open approvals. */
  list(query: ListApprovalsQuery = {}): Promise<List<ApprovalInfo>> {
    return this.#transport.call("GET /api/v1/approvals", { query });
  }

  /** All open approvals, page after page. */
  all(query: ListApprovalsQuery = {}): AsyncGenerator<ApprovalInfo, void, undefined> {
    return follow((cursor) => this.list({ limit: 1_000, ...query, cursor }));
  }

  /** Decides an approval of a run; `node` may be left out if only one is open. */
  decide(run: string, decision: Decide): Promise<RunSummary> {
    return this.#transport.call("POST /api/v1/runs/{id}/decide", { path: { id: run }, body: decision });
  }
}
