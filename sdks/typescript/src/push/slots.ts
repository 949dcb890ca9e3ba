/** Slots: how many calls go on at once; further ones wait in order. */

/** Calls that wait for a slot, for every slot; more are turned away. */
const WAITING_PER_SLOT = 16;

export class Slots {
  readonly #waiting: (() => void)[] = [];
  #nRunning = 0;

  constructor(readonly size: number) {}

  /** Calls that are here, those that wait included. */
  get load(): number {
    return this.#nRunning + this.#waiting.length;
  }

  /** Whether no more calls may wait. */
  get isFull(): boolean {
    return this.#waiting.length >= this.size * WAITING_PER_SLOT;
  }

  async take(): Promise<void> {
    if (this.#nRunning >= this.size) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#nRunning += 1;
  }

  /** Gives a slot back; the next call that waits takes it over. */
  release(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#nRunning -= 1;
  }
}
