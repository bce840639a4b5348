import type { Log } from '#observability';

const SIZE = 50;
/** A crash repeats the deliveries of at most this time. */
const DELAY_MS = 200;
const PAUSES_MS = [100, 300, 1000, 3000, 5000];

/** Stores the outcomes of deliveries in batches, while further attempts are made. */
export class SettlementBatch<T> {
  private settlements: T[] = [];
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> = Promise.resolve();
  private error: unknown;

  /** `write` is repeated if it fails. `written` is called once, with what it has stored. */
  constructor(
    private readonly log: Log,
    private readonly write: (settlements: T[]) => Promise<void>,
    private readonly written: (settlements: T[]) => Promise<void>,
  ) {}

  /** Some outcomes could not be stored. */
  get hasFailed(): boolean {
    return this.error !== undefined;
  }

  add(settlement: T): void {
    this.settlements.push(settlement);
    if (this.settlements.length >= SIZE) void this.flush();
    else this.timer ??= setTimeout(() => void this.flush(), DELAY_MS);
  }

  /** Resolves when all outcomes are stored. Rejects if some could not be stored: those deliveries will be repeated. */
  async end(): Promise<void> {
    await this.flush();
    if (this.error !== undefined) throw this.error as Error;
  }

  /** Resolves when the outcomes are stored, or could not be. */
  flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.settlements.length === 0) return this.writing;
    const settlements = this.settlements;
    this.settlements = [];
    this.writing = this.writing
      .then(() => this.persist(settlements))
      .then(() => this.written(settlements))
      .catch((error: unknown) => {
        this.error = error;
      });
    return this.writing;
  }

  /** A short outage of the database must not cause all of these deliveries to be repeated. */
  private async persist(settlements: T[]): Promise<void> {
    for (const pause of PAUSES_MS) {
      try {
        return await this.write(settlements);
      } catch (error) {
        if (pause === PAUSES_MS[0]) this.log.warn({ deliveries: settlements.length, err: error }, 'deliveries.not-settled');
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
    return this.write(settlements);
  }
}
