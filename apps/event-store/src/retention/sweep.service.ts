import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import type { EmitterState } from '#contracts';
import type { Transaction } from '#database';
import { type EmitterChange, EmitterChangeHandler, EmitterDirectory } from '#emitters';
import { counter, LOG, type Log } from '#observability';
import { EventStoreConfig } from '../event-store.config.js';
import { AppendRepository } from '../append/append.repository.js';

const swept = counter('events_swept_total', 'Events deleted because their emitter is deleted or unknown.', ['emitter']);

/** The first walk begins after this time, because the process may end within the interval. Not at once: after an outage, other work waits. */
const FIRST_AFTER_MS = 300_000;
const EMITTERS_AT_ONCE = 200;
/** The pause between two steps, because appending events takes precedence. */
const PAUSE_MS = 100;

export interface Swept {
  emitters: number;
  /** Events of emitters that are deleted. */
  deleted: number;
  /** Events of unknown ids. */
  unknown: number;
}

/**
 * Periodically walks over all emitters with stored events: deletes the events of deleted emitters, and older events of unknown ids. A workflow may be
 * registered after its first events. Appending never checks whether an emitter exists.
 */
@Injectable()
export class SweepService implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private timers: NodeJS.Timeout[] = [];
  private stopping = false;
  private walk: Promise<void> | undefined;

  constructor(
    private readonly events: AppendRepository,
    private readonly directory: EmitterDirectory,
    private readonly config: EventStoreConfig,
    @Inject(LOG) private readonly log: Log,
  ) {}

  onApplicationBootstrap(): void {
    const begin = (): void => {
      // not while one is in progress: with many emitters, it may take longer than the interval
      this.walk ??= this.run().finally(() => (this.walk = undefined));
    };
    this.timers = [setTimeout(begin, FIRST_AFTER_MS), setInterval(begin, this.config.sweepEveryMs)];
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopping = true;
    for (const timer of this.timers) clearTimeout(timer);
    await this.walk;
  }

  /** One walk. */
  async sweep(): Promise<Swept> {
    const result: Swept = { emitters: 0, deleted: 0, unknown: 0 };
    for (let last = ''; !this.stopping;) {
      const ids = await this.events.emittersAfter(last, EMITTERS_AT_ONCE);
      if (ids.length === 0) break;
      const now = Date.now();
      const emitters = await this.directory.find(ids);
      result.emitters += ids.length;
      // a workflow may return meanwhile, and emit
      result.deleted += await this.events.deleteBefore(
        now,
        ids.filter((id) => emitters.get(id)?.deleted),
      );
      result.unknown += await this.events.deleteBefore(
        now - this.config.unknownEmittersKeptMs,
        ids.filter((id) => !emitters.has(id)),
      );
      last = ids.at(-1) ?? last;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    await this.events.deleteOldWithdrawn();
    await this.events.deleteOldDeletions();
    return result;
  }

  private async run(): Promise<void> {
    const start = performance.now();
    try {
      const result = await this.sweep();
      swept.inc({ emitter: 'deleted' }, result.deleted);
      swept.inc({ emitter: 'unknown' }, result.unknown);
      this.log.info({ ...result, duration_ms: Math.round(performance.now() - start) }, 'events.swept');
    } catch (error) {
      // the catalog or the database is down: the next walk retries
      this.log.warn({ err: error }, 'events.sweep-interrupted');
    }
  }
}

/**
 * Deletes the events of a deleted emitter, but not those of a workflow that returned after its removal. In the transaction that stores the deletion, their
 * locks would stop the partition for as long as the deletion takes. The sweep finds what a crash leaves, and events that are emitted in its name afterwards.
 */
@Injectable()
export class DeletedEmitters extends EmitterChangeHandler {
  constructor(
    private readonly events: AppendRepository,
    @Inject(LOG) private readonly log: Log,
  ) {
    super();
  }

  async emittersChanged(transaction: Transaction, changes: EmitterChange[]): Promise<void> {
    for (const { state } of changes) {
      if (state.deleted) transaction.afterCommit(() => this.deleteAll(state));
      // nearly always, its events were deleted after its removal; the sweep does not look for them
      else if (state.removed_at_ms !== undefined) await this.deleteBefore(state.removed_at_ms, state, transaction);
    }
  }

  private async deleteAll(state: EmitterState): Promise<void> {
    try {
      await this.deleteBefore(state.removed_at_ms ?? Number.MAX_SAFE_INTEGER, state);
    } catch (error) {
      // the sweep retries
      this.log.warn({ emitter_id: state.emitter_id, err: error }, 'emitter.events-not-deleted');
    }
  }

  private async deleteBefore(ms: number, { emitter_id, deleted }: EmitterState, transaction?: Transaction): Promise<void> {
    const events = await this.events.deleteBefore(ms, [emitter_id], transaction);
    if (deleted || events > 0) this.log.info({ emitter_id, events }, 'emitter.events-deleted');
  }
}
