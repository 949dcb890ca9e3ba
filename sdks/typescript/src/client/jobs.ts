/** Jobs: creating, reading, canceling and retrying them, and waiting for their results. */
import { JobFailedError } from "../errors.ts";
import type {
  JobAttempt, JobCreated, JobDetail, JobSummary, JobsCreated, List, ListJobAttemptsQuery, ListJobsQuery, NewJob,
} from "../openapi.ts";
import { follow } from "../pages.ts";
import type { Transport } from "../transport.ts";
import { waitUntil, type WaitOptions } from "../waiting.ts";

const ENDED = new Set(["completed", "failed", "canceled"]);

/** A created job. `Result` is the type of its result. */
export class JobHandle<Result = unknown> {
  readonly id: string;
  /** An open job held the same deduplication key; this is that job. */
  readonly isDuplicate: boolean;
  readonly #jobs: Jobs;

  constructor(jobs: Jobs, created: JobCreated) {
    this.#jobs = jobs;
    this.id = created.id;
    this.isDuplicate = created.duplicate ?? false;
  }

  get(): Promise<JobDetail> {
    return this.#jobs.get(this.id);
  }

  /** Waits for the end and returns the result; `JobFailedError` if the job failed or was canceled. */
  async wait(options: WaitOptions = {}): Promise<Result> {
    const job = await this.#jobs.wait(this.id, options);
    if (job.status !== "completed") throw new JobFailedError(job);
    return job.latest_attempt.result as Result;
  }

  cancel(): Promise<JobDetail> {
    return this.#jobs.cancel(this.id);
  }
}

export class Jobs {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Creates a job. While an open job of its queue holds the same `dedup_key`, the answer is that job. */
  async create<Result = unknown>(job: NewJob): Promise<JobHandle<Result>> {
    const request = { body: job, isRepeatable: Boolean(job.dedup_key) };
    const created = await this.#transport.call("POST /api/v1/jobs", request);
    return new JobHandle<Result>(this, created as JobCreated);
  }

  /** Creates up to 10,000 jobs: all, or none if one of them is invalid. */
  async createBatch(jobs: NewJob[]): Promise<JobHandle[]> {
    const request = { body: jobs, isRepeatable: jobs.every((job) => job.dedup_key) };
    const created = await this.#transport.call("POST /api/v1/jobs", request);
    return (created as Extract<JobsCreated, { items: unknown }>).items.map((one) => new JobHandle(this, one));
  }

  /** A job with its payload and its latest attempt. */
  get(id: string): Promise<JobDetail> {
    return this.#transport.call("GET /api/v1/jobs/{id}", { path: { id } });
  }

  /** A page of jobs, newest first. */
  list(query: ListJobsQuery = {}): Promise<List<JobSummary>> {
    return this.#transport.call("GET /api/v1/jobs", { query });
  }

  /** All jobs, page after page. */
  all(query: ListJobsQuery = {}): AsyncGenerator<JobSummary, void, undefined> {
    return follow((cursor) => this.list({ limit: 1_000, ...query, cursor }));
  }

  /** The attempts at a job, oldest first. */
  attempts(id: string, query: ListJobAttemptsQuery = {}): Promise<List<JobAttempt>> {
    return this.#transport.call("GET /api/v1/jobs/{id}/attempts", { path: { id }, query });
  }

  /** Waits until a job has completed, failed or was canceled. */
  wait(id: string, options: WaitOptions = {}): Promise<JobDetail> {
    return waitUntil(id, () => this.get(id), (job) => ENDED.has(job.status), options);
  }

  /** Cancels a job. A running one ends when its worker has stopped, or 30 seconds later. */
  cancel(id: string): Promise<JobDetail> {
    return this.#transport.call("POST /api/v1/jobs/{id}/cancel", { path: { id }, body: {} });
  }

  /** Ends the delay of a job, or opens a failed or canceled one again. */
  retry(id: string): Promise<JobDetail> {
    return this.#transport.call("POST /api/v1/jobs/{id}/retry", { path: { id }, body: {} });
  }
}
