/** Schedules: jobs and runs that start by the clock. */
import type {
  NewSchedule, NextRuns, ScheduleInfo, SchedulePatch, SchedulePreviewRequest, Triggered,
} from "../openapi.ts";
import { follow } from "../pages.ts";
import type { Transport } from "../transport.ts";

export class Schedules {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  create(schedule: NewSchedule): Promise<ScheduleInfo> {
    return this.#transport.call("POST /api/v1/schedules", { body: schedule });
  }

  /** All schedules, oldest first, page after page. */
  all(): AsyncGenerator<ScheduleInfo, void, undefined> {
    return follow(async (cursor) => {
      const page = await this.#transport.call("GET /api/v1/schedules", { query: { cursor } });
      return { items: page.schedules, next: page.next };
    });
  }

  get(id: string): Promise<ScheduleInfo> {
    return this.#transport.call("GET /api/v1/schedules/{id}", { path: { id } });
  }

  /** Changes a schedule; absent fields keep their values. */
  change(id: string, change: SchedulePatch): Promise<ScheduleInfo> {
    return this.#transport.call("PATCH /api/v1/schedules/{id}", { path: { id }, body: change, isRepeatable: true });
  }

  /** Turns a schedule on or off. */
  async toggle(id: string, isEnabled: boolean): Promise<ScheduleInfo> {
    const request = { path: { id }, body: { enabled: isEnabled }, isRepeatable: true };
    return this.#transport.call("POST /api/v1/schedules/{id}/toggle", request);
  }

  /** Starts the target now. */
  trigger(id: string): Promise<Triggered> {
    return this.#transport.call("POST /api/v1/schedules/{id}/trigger", { path: { id }, body: {} });
  }

  /** The next slots, in UTC and in local time. */
  next(id: string, count?: number): Promise<NextRuns> {
    return this.#transport.call("GET /api/v1/schedules/{id}/next", { path: { id }, query: { count } });
  }

  /** The next slots of an expression. */
  preview(preview: SchedulePreviewRequest): Promise<NextRuns> {
    return this.#transport.call("POST /api/v1/schedules/preview", { body: preview, isRepeatable: true });
  }

  /** Deletes a schedule; started jobs and runs go on. */
  async delete(id: string): Promise<void> {
    await this.#transport.call("DELETE /api/v1/schedules/{id}", { path: { id } });
  }
}
