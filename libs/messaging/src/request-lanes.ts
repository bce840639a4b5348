import { randomUUID } from 'node:crypto';
import type { LogRecord } from './log-record.js';
import type { Task } from './lanes.js';

/** How far the clocks of other machines may be ahead, in ms. */
const CLOCKS_MS = 1000;

/**
 * The lanes of requests. Each request has its own lane, so that they do not wait for each other, except for commands that may be repetitions: after a crash,
 * those of the last moments are handled again although their callers have the responses. They keep their order for each key, and later commands of the
 * key wait behind them: otherwise, a webhook that was created and deleted would exist again, or the first of two changes would be the last.
 *
 *   partitions assigned ─► commands from before: in the lane of their key ─► later ones, too, while some of the key are unfinished ─► own lanes
 */
export class RequestLanes {
  private assignedAt = -Infinity;
  /** The number of unfinished commands in the lane of each key. */
  private readonly inOrder = new Map<string, number>();

  /** isCommand: whether the record is a command, which changes something. */
  constructor(private readonly isCommand: (record: LogRecord) => boolean) {}

  /** Other processes may have handled the requests that come from now on, if they are older. */
  assigned(now = Date.now()): void {
    this.assignedAt = now;
  }

  task(record: LogRecord, handle: () => Promise<void>): Task {
    const { key, timestamp } = record;
    if (key === null || !this.isCommand(record) || (timestamp >= this.assignedAt + CLOCKS_MS && !this.inOrder.has(key)))
      return { lane: randomUUID(), run: handle };
    this.inOrder.set(key, (this.inOrder.get(key) ?? 0) + 1);
    const end = () => this.end(key);
    return { lane: `in order ${key}`, run: () => handle().then(end), drop: end };
  }

  private end(key: string): void {
    const left = (this.inOrder.get(key) ?? 0) - 1;
    if (left > 0) this.inOrder.set(key, left);
    else this.inOrder.delete(key);
  }
}
