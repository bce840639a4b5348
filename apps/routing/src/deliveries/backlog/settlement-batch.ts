import type { Log } from '#observability';
import type { Settlement } from '../store/delivery-store.js';

const SIZE = 50;
/** A crash repeats the deliveries of at most this time. */
const DELAY_MS = 200;
const PAUSES_MS = [100, 300, 1000, 3000, 5000];

/** Stores the outcomes of deliveries in batches, while their lanes continue. */
export class SettlementBatch {
  private settlements: Settlement[] = [];
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> = Promise.resolve();
  private error: unknown;

  /** `write` is repeated if it fails. `written` is called once, with what it has stored. */
  constructor(
    private readonly log: Log,
    private readonly write: (settlements: Settlement[]) => Promise<void>,
    private readonly written: (settlements: Settlement[]) => Promise<void>,
  ) {}

  add(settlement: Settlement): void {
    this.settlements.push(settlement);
    if (this.settlements.length >= SIZE) this.flush();
    else this.timer ??= setTimeout(() => this.flush(), DELAY_MS);
  }

  /** Resolves when all outcomes are stored. Rejects if some could not be stored: those deliveries will be repeated. */
  async end(): Promise<void> {
    this.flush();
    await this.writing;
    if (this.error !== undefined) throw this.error as Error;
  }

  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.settlements.length === 0) return;
    const settlements = this.settlements;
    this.settlements = [];
    this.writing = this.writing
      .then(() => this.persist(settlements))
      .then(() => this.written(settlements))
      .catch((error: unknown) => {
        this.error = error;
      });
  }

  /** A short outage of the database must not cause all of these deliveries to be repeated. */
  private async persist(settlements: Settlement[]): Promise<void> {
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
