import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { isId, isNotFound, type ReplayId } from '#contracts';
import { type EmittedEvent, eventIdOf, type EventPlace, logPlaceOf } from '#events';
import { Publisher } from '#messaging';
import { LOG, type Log } from '#observability';
import { FullAccounts } from '#waiting-data';
import { deliveryOf } from '../deliveries/delivery.js';
import { ParkedDeliveriesRepository } from '../deliveries/store/parked-deliveries.repository.js';
import { runRecord, workflowRecord } from '../routes/triggers.js';
import { type ReplayRow, ReplaysRepository } from './replays.repository.js';
import { ReplayLog } from './replay-log.js';

/** Replays are looked for in this interval. */
const LOOK_MS = 1000;
/** A replay whose listener is slow must not delay those of others. */
const TURN_MS = 10_000;
/** Between two steps of a replay. */
const PAUSE_MS = 200;
/** Read from the log at once. */
const CHUNK = 500;
/** Delivered at once: a live delivery may have to wait for as many. */
const BATCH = 20;
const HOUR_MS = 3_600_000;

/** A replay that this replica works on. */
interface Work {
  row: ReplayRow;
  /** Read, and not delivered yet; `offsets` is behind each. */
  ahead: { event: EmittedEvent; offset: number; partition: number }[];
  /** Behind all that is ahead. */
  behind: Record<string, number>;
  last: boolean;
}

/**
 * Carries out replays in turns, one at a time, a few deliveries at a time:
 *
 *   claimed ─► wait until nothing live is due ─► park a batch ─► wait for its first attempts ─► …
 *
 * The webhook's backlog delivers what is parked, at its rate, with the same message id as before. The progress of the replay is stored with each batch:
 * another replica continues when this one stops.
 */
@Injectable()
export class Replayer implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private stopping = false;
  private work: Promise<void> = Promise.resolve();

  constructor(
    private readonly replays: ReplaysRepository,
    private readonly log: ReplayLog,
    private readonly parked: ParkedDeliveriesRepository,
    private readonly publisher: Publisher,
    private readonly full: FullAccounts,
    @Inject(LOG) private readonly logger: Log,
  ) {}

  onApplicationBootstrap(): void {
    this.work = this.loop();
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopping = true;
    await this.work;
  }

  private async loop(): Promise<void> {
    let swept = Date.now();
    while (!this.stopping) {
      try {
        const row = await this.replays.claim();
        if (row) await this.carryOut(row);
        if (Date.now() - swept > HOUR_MS) {
          swept = Date.now();
          await this.replays.deleteOld();
        }
      } catch (error) {
        this.logger.warn({ err: error }, 'replay.interrupted');
      }
      await sleep(LOOK_MS, undefined, { ref: false });
    }
  }

  private async carryOut(row: ReplayRow): Promise<void> {
    const work: Work = { row, ahead: [], behind: row.offsets, last: false };
    const until = Date.now() + TURN_MS;
    while (!this.stopping && isRunning(row) && Date.now() < until) {
      if (await this.step(work)) await sleep(PAUSE_MS);
      // false: it was cancelled, or another replica continues it
      if (!(await this.replays.save(row, { release: !isRunning(row) }))) return;
    }
    if (isRunning(row)) await this.replays.save(row, { release: true });
    else this.logger.info({ replay_id: row.id, events: row.events, delivered: row.delivered, failed: row.failed }, 'replay.done');
  }

  /** Returns whether to pause before the next step. */
  private async step(work: Work): Promise<boolean> {
    const { row } = work;
    const { listener_id: listener } = row;
    if (isId('webhook', listener) && row.parked.length > 0) {
      const { waiting, failed } = await this.replays.outcomes(listener, row.parked);
      if (waiting > 0) return true;
      row.delivered += row.parked.length - failed;
      row.failed += failed;
      row.parked = [];
    }
    if (work.ahead.length === 0 && !work.last && !(await this.readOn(work))) {
      row.status = 'cancelled';
      return false;
    }
    if (work.ahead.length === 0) {
      row.offsets = work.behind;
      if (work.last) row.status = 'done';
      return false;
    }
    if (this.full.isFull(row.owner_id)) return true;
    if (isId('webhook', listener) && (await this.replays.hasDue(listener))) return true;
    // this process may have stood still, and another replica may have delivered the batch
    if (!(await this.replays.save(row))) return true;
    const batch = work.ahead.slice(0, BATCH);
    await this.deliver(
      row,
      batch.map(({ event }) => event),
    );
    work.ahead = work.ahead.slice(BATCH);
    for (const { partition, offset } of batch) row.offsets = { ...row.offsets, [partition]: offset + 1 };
    return true;
  }

  /** False if the emitter was deleted, which the fact of its deletion may have missed: the replay was being created. */
  private async readOn(work: Work): Promise<boolean> {
    const chunk = await this.log.next({ ...work.row, offsets: work.behind }, CHUNK).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    if (!chunk) return false;
    const { events, offsets, last } = chunk;
    work.ahead = events.map((event) => ({ event, ...logPlaceOf(event.place) }));
    work.behind = offsets;
    work.last = last;
    return true;
  }

  private async deliver(row: ReplayRow, events: EmittedEvent[]): Promise<void> {
    const { id, owner_id, listener_id: listener } = row;
    if (isId('webhook', listener)) {
      for (const event of events) {
        // the webhook may be deleted meanwhile
        if (!(await this.parked.parkAgain(owner_id, deliveryOf(event, listener), []))) return void (row.status = 'cancelled');
      }
      row.parked = events.map(({ place }) => eventIdOf(place));
      return;
    }
    const records = events.map((event) =>
      isId('source', listener)
        ? runRecord(event, owner_id, listener, { runId: replayRunId(id, event.place) })
        : workflowRecord(event, listener),
    );
    await this.publisher.send(records);
    row.delivered += events.length;
  }
}

/** The id of the run that a replay makes of a source for an event. */
export const replayRunId = (id: ReplayId, place: EventPlace): string => `${id}-${eventIdOf(place)}`;

const isRunning = ({ status }: ReplayRow): boolean => status === 'running';
