import { randomUUID } from 'node:crypto';
import { SumPerKey } from '#limits';
import type { LogRecord } from './log-record.js';
import type { Task } from './lanes.js';

/** How far the clocks of other machines may be ahead, in ms. */
const CLOCKS_MS = 1000;

/**
 * The lanes of requests. Each request has its own lane, so that they do not wait for each other, except for commands that may be repetitions: after a crash,
 * those of the last moments are handled again although their callers have the responses. They keep their order for each key, and later commands of the
 * key wait behind them: otherwise, a webhook that was created and deleted would exist again, or the first of two changes would be the last.
 *
 *   partitions assigned ─► commands from before: in the lane of their key ─► later ones, too, while some of these are unfinished ─► own lanes
 */
export class RequestLanes {
  private assignedAt = -Infinity;
  /** The number of unfinished commands from before, by key. */
  private readonly earlier = new SumPerKey<string>();

  /** isCommand: whether the record is a command, which changes something. */
  constructor(private readonly isCommand: (record: LogRecord) => boolean) {}

  /** Other processes may have handled the requests that come from now on, if they are older. */
  assigned(now = Date.now()): void {
    this.assignedAt = now;
  }

  task(record: LogRecord, handle: () => Promise<void>): Task {
    const { key, timestamp } = record;
    const isEarlier = timestamp < this.assignedAt + CLOCKS_MS;
    if (key === null || !this.isCommand(record) || !(isEarlier || this.earlier.of(key) > 0)) return { lane: randomUUID(), run: handle };
    const lane = `in order ${key}`;
    // those that come later do not count: an account that sends them all the time would never have several at a time again
    if (!isEarlier) return { lane, run: handle };
    this.earlier.add(key, 1);
    const end = () => void this.earlier.add(key, -1);
    return { lane, run: () => handle().then(end), drop: end };
  }
}
