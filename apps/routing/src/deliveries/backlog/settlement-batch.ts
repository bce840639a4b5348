import type { Settlement } from '../store/delivery-store.js';

const SIZE = 50;
/** What a crash repeats, at most. */
const DELAY_MS = 200;
const PAUSES_MS = [100, 300, 1000, 3000, 5000];

/** Writes down what becomes of deliveries, many at a time: lanes go on meanwhile. */
export class SettlementBatch {
  private settlements: Settlement[] = [];
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> = Promise.resolve();
  private error: unknown;

  constructor(private readonly write: (settlements: Settlement[]) => Promise<void>) {}

  add(settlement: Settlement): void {
    this.settlements.push(settlement);
    if (this.settlements.length >= SIZE) this.flush();
    else this.timer ??= setTimeout(() => this.flush(), DELAY_MS);
  }

  /** Resolves when all is written; rejects when something could not be: then it's attempted again some time. */
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
      .catch((error: unknown) => {
        this.error = error;
      });
  }

  /** A database that is away for a moment must not make us deliver all of it again. */
  private async persist(settlements: Settlement[]): Promise<void> {
    for (const pause of PAUSES_MS) {
      try {
        return await this.write(settlements);
      } catch {
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
    return this.write(settlements);
  }
}
