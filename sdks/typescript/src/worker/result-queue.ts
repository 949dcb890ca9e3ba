/** Ends of jobs that the server has not accepted yet, in batches of the size of one request. */
import type { EndedJob } from "./messages.ts";

/** Ends in one request. */
export const BATCH_MAX = 500;
/** Characters of the ends in one request: well below the server's limit. */
const BATCH_CHARS = 1 << 20;
/** Characters of one end that are sent at all: a server hangs up on more before it can say that this is too much. */
const END_CHARS_MAX = 32 << 20;

export class ResultQueue {
  #ends: EndedJob[] = [];
  #batchMax = BATCH_MAX;

  get size(): number {
    return this.#ends.length;
  }

  push(end: EndedJob): void {
    const { length } = end.body;
    const why = `it has ${length} characters, and at most ${END_CHARS_MAX} are sent`;
    this.#ends.push(length <= END_CHARS_MAX ? end : unsendable(end, why));
  }

  /** Takes the ends of one request; a large end is sent alone. */
  take(isWanted: (end: EndedJob) => boolean): EndedJob[] {
    const batch: EndedJob[] = [];
    let n = 0;
    let chars = 0;
    for (; n < this.#ends.length && batch.length < this.#batchMax; n += 1) {
      const end = this.#ends[n] as EndedJob;
      if (!isWanted(end)) continue;
      if (batch.length > 0 && chars + end.body.length > BATCH_CHARS) break;
      chars += end.body.length;
      batch.push(end);
    }
    this.#ends = this.#ends.slice(n);
    return batch;
  }

  /** Puts ends back that were not accepted. */
  putBack(ends: readonly EndedJob[]): void {
    this.#ends = [...ends, ...this.#ends];
  }

  /** The next batches may be large again. */
  accepted(): void {
    this.#batchMax = BATCH_MAX;
  }

  /**
   * The server refuses a batch itself: the ends are sent in smaller batches, until the one that it cannot take stands
   * alone; that one is replaced by a failure, so that its run hears of it. Returns the ends that are given up.
   */
  refused(batch: readonly EndedJob[], why: string): EndedJob[] {
    if (batch.length > 1) {
      this.#batchMax = Math.ceil(batch.length / 2);
      this.putBack(batch);
      return [];
    }
    const [end] = batch;
    if (end === undefined) return [];
    if (isReplaced(end)) return [end];
    this.putBack([unsendable(end, why)]);
    return [];
  }
}

const REPLACED = "the answer of the handler could not be handed in: ";

function isReplaced(end: EndedJob): boolean {
  return end.body.includes(REPLACED) && end.body.length < 10_000;
}

/** The end of a job whose own end cannot be handed in. */
function unsendable({ job, lease }: EndedJob, why: string): EndedJob {
  const error = `${REPLACED}${why}; answer with less, or with a reference to it`;
  return { job, lease, body: JSON.stringify({ id: job, lease, outcome: "failed", error, retryable: false }) };
}
