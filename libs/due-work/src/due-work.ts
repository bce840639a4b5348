import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import { type Session, Transaction } from '#database';
import type { Log } from '#observability';

/** The longest pause: rows that another replica has written, and has stopped before it handled them, wait at most this long in addition. */
export const LONGEST_MS = 3000;
/** Part of the longest pause, at random: otherwise all work of a process would need a connection to the database at the same moment, each time. */
const VARIATION = 0.2;
/** After a failure. */
const RETRY_MS = 1000;
/** The shortest: rows that become due at about the same time share a transaction. */
const SHORTEST_MS = 50;

/** A table with rows that become due. */
export abstract class DueRows {
  private notify: (inMs: number) => void = () => {};

  /** How long until the next row is due, in ms, not positive if it is; null without rows. */
  abstract msToNext(): Promise<number | null>;

  /** @param notify receives in how many ms a row is due that this process has written */
  listen(notify: (inMs: number) => void): void {
    this.notify = notify;
  }

  /** Call it when a row was written that is due in this many ms. It counts when the transaction, if there is one, is committed. */
  scheduled(session: Session, inMs = 0): void {
    if (session instanceof Transaction) session.afterCommit(async () => this.notify(inMs));
    else this.notify(inMs);
  }
}

/** How long until the first row is due, in ms; null without rows. @param text selects it, as `ms` */
export async function msToFirst(session: Session, name: string, text: string, values: unknown[] = []): Promise<number | null> {
  const { rows } = await session.query<{ ms: number }>({ name, text, values });
  return rows[0]?.ms ?? null;
}

/** Handles the rows of a table when they become due, in batches: a full batch is followed by the next one at once. Replicas share the work. */
export abstract class DueWork implements OnApplicationBootstrap, BeforeApplicationShutdown {
  protected stopping = false;
  private work: Promise<void> = Promise.resolve();
  /** When a row is due that was written since the last look, in ms. */
  private nextAt = Infinity;
  private endPause: () => void = () => {};

  /** failure: the name of the log line when `handleDue` fails; random: simulations replace it to be repeatable. */
  protected constructor(
    private readonly rows: Pick<DueRows, 'msToNext' | 'listen'>,
    protected readonly log: Log,
    private readonly settings: { batch: number; failure: string; random?: () => number },
  ) {
    rows.listen((inMs) => this.scheduled(inMs));
  }

  /** Handles what is due, at most a batch, and returns how much it was. */
  abstract handleDue(): Promise<number>;

  onApplicationBootstrap(): void {
    this.work = this.run();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopping = true;
    this.endPause();
    await this.work;
  }

  /** How long until something can be handled, in ms. */
  protected msToNext(): Promise<number | null> {
    return this.rows.msToNext();
  }

  private async run(): Promise<void> {
    const { batch, failure } = this.settings;
    while (!this.stopping) {
      this.nextAt = Infinity;
      let pause: number;
      try {
        pause = (await this.msToNext()) ?? Infinity;
        if (pause <= 0 && (await this.handleDue()) >= batch) continue;
      } catch (error) {
        this.log.warn({ err: error }, failure);
        pause = RETRY_MS;
      }
      await this.pause(pause);
    }
  }

  /** A row is due in this many ms. */
  protected scheduled(inMs: number): void {
    this.nextAt = Math.min(this.nextAt, performance.now() + inMs);
    this.endPause();
  }

  /** Until a row is due, but neither shorter nor longer than a pause may be. */
  private async pause(ms: number): Promise<void> {
    const start = performance.now();
    const { random = Math.random } = this.settings;
    const longest = LONGEST_MS * (1 - VARIATION * random());
    const end = () => Math.min(Math.max(start + SHORTEST_MS, Math.min(start + ms, this.nextAt)), start + longest);
    for (let rest; !this.stopping && (rest = end() - performance.now()) > 0;) {
      await new Promise<void>((resolve) => {
        // a fraction of a millisecond would be cut off, and need a second timer
        const timer = setTimeout(resolve, Math.ceil(rest));
        this.endPause = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.endPause = () => {};
  }
}
