/** Calls: the ends of calls that a worker suspended. */
import type { CallReport, ReportResponse } from "../openapi.ts";
import type { Transport } from "../transport.ts";

export class Calls {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Ends a suspended call; `id` is `call.id` of its handler. An identical report is `ok` again. */
  report(id: string, report: CallReport): Promise<ReportResponse> {
    return this.#transport.call("POST /api/v1/calls/{id}/report", { path: { id }, body: report, isRepeatable: true });
  }
}
