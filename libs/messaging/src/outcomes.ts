import { isInvalid, SluiceError } from '#contracts';
import { counter, LimitedWarnings, type Log } from '#observability';
import { deadLetterRecord, sendOrSetAside } from './dead-letters.js';
import { type Outcome, rejected } from './handlers.js';
import type { Task } from './lanes.js';
import type { LogRecord } from './log-record.js';
import { BadRecord } from './payload.js';
import type { TransportOptions } from './transport.js';

const handled = counter('records_handled_total', 'Records that a handler has finished with, by how it ended.', ['topic', 'outcome']);

/** The number of attempts for a record whose handler throws an error that is not transient. */
const MAX_TRIES = 4;

/** The handler threw. `isFailure`: an error that may be permanent. */
interface Retry {
  kind: 'retry';
  reason: string;
  isFailure?: true;
}

/** Thrown so that the lane repeats the task. The reason has been logged. */
export class Repeat extends Error {}

/**
 * Handles a record until it is finished:
 *
 *   handler ─► done, ignored │ throws: its lane repeats it after a pause │ rejected: the dead-letter topic
 */
export class Outcomes {
  /** By topic. */
  private readonly retried = new Map<string, LimitedWarnings>();

  constructor(private readonly options: TransportOptions) {}

  /**
   * The work of a task. It resolves when the record is finished. Throws Repeat, or the error of Kafka if it is unavailable for the dead letter: then the next
   * call runs the handler again.
   */
  work(record: LogRecord, handle: () => Promise<unknown>): () => Promise<void> {
    let tries = 1;
    return async () => {
      const outcome = await this.attempt(handle, tries);
      switch (outcome?.kind) {
        case undefined:
          return handled.inc({ topic: record.topic, outcome: 'done' });
        case 'ignored':
          handled.inc({ topic: record.topic, outcome: 'ignored' });
          return this.options.log.debug({ ...whereOf(record), reason: outcome.reason }, 'record.ignored');
        case 'rejected':
          return this.reject(record, outcome.reason);
        case 'retry':
          this.retriedOf(record.topic).warn({ ...whereOf(record), tries, reason: outcome.reason });
          if (outcome.isFailure) tries += 1;
          throw new Repeat(outcome.reason);
      }
    };
  }

  /** A task that copies a record that does not belong on its topic. The lane repeats it until Kafka has acknowledged the copy. */
  deadLetterTask(record: LogRecord, reason: string): Task {
    return { lane: `dead letters ${record.topic} ${record.partition}`, run: () => this.reject(record, reason) };
  }

  private retriedOf(topic: string): LimitedWarnings {
    let retried = this.retried.get(topic);
    if (!retried) this.retried.set(topic, (retried = new LimitedWarnings(this.options.log, 'record.retried', { topic })));
    return retried;
  }

  private async reject(record: LogRecord, reason: string): Promise<void> {
    const { service, log } = this.options;
    await sendOrSetAside([deadLetterRecord(service, record, reason)], this.options);
    log.warn({ ...whereOf(record), reason }, 'record.rejected');
    handled.inc({ topic: record.topic, outcome: 'rejected' });
  }

  private async attempt(handle: () => Promise<unknown>, tries: number): Promise<Outcome | Retry | undefined> {
    try {
      return (await handle()) as Outcome | undefined;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      // an error in the record itself does not go away
      if (error instanceof BadRecord || isInvalid(error)) return rejected(reason);
      if (isOutage(error, this.options)) return { kind: 'retry', reason };
      this.options.log[tries < MAX_TRIES ? 'warn' : 'error']({ tries, err: error }, 'record.failed');
      return tries < MAX_TRIES ? { kind: 'retry', reason, isFailure: true } : rejected(reason);
    }
  }
}

/** Whether work fails because a store or another service is down, so that it succeeds later. isTransient: of `TransportOptions` */
export const isOutage = (error: unknown, { isTransient }: Pick<TransportOptions, 'isTransient'>): boolean =>
  isTransient(error) || (error instanceof SluiceError && ['timeout', 'unavailable'].includes(error.code));

/** Returns what logs failures of work that is repeated every few seconds: an outage as a warning, and others as errors. `common`: fields of each line. */
export function repeatedFailures(
  log: Log,
  message: string,
  common: object,
  { isTransient }: Pick<TransportOptions, 'isTransient'>,
): (fields: { err: unknown } & Record<string, unknown>) => void {
  const outages = new LimitedWarnings(log, message, common);
  const others = new LimitedWarnings(log, message, common, 'error');
  return (fields) => (isOutage(fields.err, { isTransient }) ? outages : others).warn(fields);
}

/** Returns what logs the failures of a group's lanes: an outage can concern thousands of them. */
export function laneFailures(
  log: Log,
  { group, isTransient }: { group: string } & Pick<TransportOptions, 'isTransient'>,
): (error: unknown, lane: string) => void {
  const failed = repeatedFailures(log, 'lane.task-failed', { group }, { isTransient });
  return (err, lane) => failed({ lane, err });
}

const whereOf = ({ topic, partition, offset }: LogRecord) => ({ topic, partition, offset });
