import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { isId, isNotFound, type ReplayId, SluiceError } from '#contracts';
import { type EmittedEvent, eventIdOf, type EventPlace, logPlaceOf } from '#events';
import { Publisher, sendOrSetAside } from '#messaging';
import { LOG, type Log } from '#observability';
import { FullAccounts } from '#waiting-data';
import { deliveryOf } from '../deliveries/delivery.js';
import { DeliveredLog, DeliveredRepository } from '../deliveries/history/delivered.repository.js';
import { ParkedDeliveriesRepository } from '../deliveries/store/parked-deliveries.repository.js';
import { runRecord, workflowRecord } from '../routes/triggers.js';
import { type ReplayRow, ReplaysRepository } from './replays.repository.js';
import { ReplayLog } from './replay-log.js';

/** Replays are looked for in this interval. */
const LOOK_MS = 1000;
/** The longest turn of a replay. */
const TURN_MS = 10_000;
/** Between two steps of a replay. */
const PAUSE_MS = 200;
/** Steps of a turn that only wait, one after another: long enough for a batch to be attempted by a receiver that responds. */
const MAX_WAITS = 5;
/** After a turn that ended because its replay had to wait. */
const REST_MS = 2000;
/** Read from the log at once. */
const CHUNK = 500;
/** Delivered at once: a live delivery may have to wait for as many. */
const BATCH = 20;
/** How long the deliveries of a cancelled replay are counted. */
const COUNTED_FOR_MS = 60_000;
const HOUR_MS = 3_600_000;

/** A replay that this replica works on. */
interface Work {
  row: ReplayRow;
  /** Read, and not delivered yet. */
  ahead: { event: EmittedEvent; offset: number; partition: number }[];
  /** Behind all that is ahead. */
  behind: Pick<ReplayRow, 'offsets' | 'clocks'>;
  last: boolean;
}

/** A step has `waited` for other work, `read` without anything to deliver, or `delivered`. */
type Step = 'waited' | 'read' | 'delivered';

/**
 * Carries out replays in turns, one at a time, a few deliveries at a time. The accounts take turns, and then the replays of each:
 *
 *   claimed ─► wait until nothing live is due ─► park a batch ─► wait for its first attempts ─► …
 *                                                                     cancelled ─► end it ◄─┘
 *
 * A turn that begins by waiting ends at once, and another one after a second of waiting: replays whose receivers do not respond cost others nothing.
 * The webhook's backlog delivers what is parked, at its rate, with the same message id as before. The progress of the replay is stored with each batch:
 * another replica continues when this one stops.
 */
@Injectable()
export class Replayer implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private stopping = false;
  private swept = Date.now();
  private work: Promise<void> = Promise.resolve();

  constructor(
    private readonly replays: ReplaysRepository,
    private readonly log: ReplayLog,
    private readonly parked: ParkedDeliveriesRepository,
    private readonly delivered: DeliveredRepository,
    private readonly deliveredLog: DeliveredLog,
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
    while (!this.stopping) {
      const wasTurn = await this.turn().catch((error: unknown) => {
        this.logger.warn({ err: error }, 'replay.interrupted');
        return false;
      });
      if (!wasTurn) await sleep(LOOK_MS, undefined, { ref: false });
    }
  }

  /** False if it was no replay's turn. */
  private async turn(): Promise<boolean> {
    if (Date.now() - this.swept > HOUR_MS) {
      this.swept = Date.now();
      await this.replays.deleteOld();
    }
    const row = await this.replays.claim();
    if (row) await this.carryOut(row);
    return row !== undefined;
  }

  private async carryOut(row: ReplayRow): Promise<void> {
    const work: Work = { row, ahead: [], behind: { offsets: row.offsets, clocks: row.clocks }, last: false };
    const until = performance.now() + TURN_MS;
    let waits = MAX_WAITS;
    for (let restMs: number | undefined; restMs === undefined;) {
      const did = await this.step(work);
      waits = did === 'waited' ? waits + 1 : 0;
      if (waits > MAX_WAITS) restMs = REST_MS;
      else if (!isRunning(row) || this.stopping || performance.now() >= until) restMs = 0;
      // false: it has ended, or another replica continues it
      if (!(await this.replays.save(row, { restMs }))) return;
      if (restMs === undefined && did !== 'read') await sleep(PAUSE_MS);
    }
    if (isRunning(row)) return;
    const { id, status, events, delivered, failed } = row;
    this.logger.info({ replay_id: id, events, delivered, failed }, `replay.${status}`);
  }

  private async step(work: Work): Promise<Step> {
    const { row } = work;
    const { waiting, delivered, failed } = await this.replays.outcomes(row);
    if (waiting > 0 && !isOverdue(row)) return 'waited';
    row.delivered += delivered;
    row.failed += failed;
    row.parked = [];
    if (row.cancelled_at) {
      row.status = 'cancelled';
      return 'read';
    }
    if (work.ahead.length === 0 && !work.last) {
      // before the log is read, which takes long
      if (await this.mustWait(row)) return 'waited';
      if (!(await this.readOn(work))) {
        row.status = 'cancelled';
        return 'read';
      }
    }
    if (work.ahead.length === 0) {
      Object.assign(row, work.behind);
      if (work.last) this.end(row);
      return 'read';
    }
    if (await this.mustWait(row)) return 'waited';
    const batch = work.ahead.slice(0, BATCH);
    const events = await this.kept(
      row,
      batch.map(({ event }) => event),
    );
    if (!events) {
      row.status = 'cancelled';
      return 'read';
    }
    // this process may have stood still, and another replica may have delivered the batch
    if (!(await this.replays.save(row))) return 'waited';
    // the next step ends it
    if (row.cancelled_at) return 'read';
    if (events.length > 0) await this.deliver(row, events);
    work.ahead = work.ahead.slice(BATCH);
    for (const { partition, offset, event } of batch) {
      row.offsets = { ...row.offsets, [partition]: offset + 1 };
      row.clocks = { ...row.clocks, [partition]: event.place.ms };
    }
    return 'delivered';
  }

  /** Ends a replay that has reached the end of its part. Events that it has not found have failed: they were deleted, by their owner or by Kafka. */
  private end(row: ReplayRow): void {
    const gone = row.events - row.delivered - row.failed;
    if (gone > 0) {
      this.logger.info({ replay_id: row.id, events: gone }, 'replay.events-gone');
      row.failed += gone;
    }
    row.status = 'done';
  }

  /** While its account is full, or live deliveries to its webhook are due: those go first. */
  private async mustWait({ owner_id, listener_id }: ReplayRow): Promise<boolean> {
    return (await this.full.isFull(owner_id)) || (isId('webhook', listener_id) && (await this.replays.hasDue(listener_id)));
  }

  /** False if the replay cannot be continued. */
  private async readOn(work: Work): Promise<boolean> {
    const chunk = await this.log.next({ ...work.row, ...work.behind }, CHUNK).catch(this.ifImpossible(work.row));
    if (!chunk) return false;
    const { events, offsets, clocks, last } = chunk;
    work.ahead = events.map((event) => ({ event, ...logPlaceOf(event.place) }));
    work.behind = { offsets, clocks };
    work.last = last;
    return true;
  }

  /** The events that were not deleted since the log was read, which may be a turn ago. Undefined if the replay cannot be continued. */
  private kept(row: ReplayRow, events: EmittedEvent[]): Promise<EmittedEvent[] | undefined> {
    return this.log.withoutDeleted(row, events).catch(this.ifImpossible(row));
  }

  /**
   * Handles an error after which the replay cannot be continued: its emitter was deleted, which the fact of its deletion may have missed, because the replay was
   * being created; or more deletions concern its events than can be considered. Throws any other error.
   */
  private ifImpossible({ id }: ReplayRow): (error: unknown) => undefined {
    return (error) => {
      if (!isNotFound(error) && !(error instanceof SluiceError && error.code === 'unprocessable')) throw error;
      this.logger.warn({ replay_id: id, err: error }, 'replay.impossible');
    };
  }

  private async deliver(row: ReplayRow, events: EmittedEvent[]): Promise<void> {
    const { id, owner_id, listener_id: listener } = row;
    if (isId('webhook', listener)) {
      // the attempts that this process made a moment ago
      await this.deliveredLog.flush(listener);
      const places = events.map(({ place }) => place);
      const before = await this.delivered.findAll(owner_id, listener, places);
      for (const [index, event] of events.entries()) {
        const attempts = before[index]?.attempts ?? [];
        // the webhook may be deleted meanwhile
        if (!(await this.parked.parkAgain(owner_id, deliveryOf(event, listener), { attempts, fresh: true })))
          return void (row.status = 'cancelled');
      }
      row.parked = places.map(eventIdOf);
      return;
    }
    const records = events.map((event) =>
      isId('source', listener)
        ? runRecord(event, owner_id, listener, { runId: replayRunId(id, event.place) })
        : workflowRecord(event, listener),
    );
    await sendOrSetAside(records, { publisher: this.publisher, service: 'routing', log: this.logger });
    row.delivered += events.length;
  }
}

/** The id of the run that a replay makes of a source for an event. */
export const replayRunId = (id: ReplayId, place: EventPlace): string => `${id}-${eventIdOf(place)}`;

/** Its receiver is slow or failing, or its webhook is not active: the deliveries that still wait are not counted. */
const isOverdue = ({ cancelled_at }: ReplayRow): boolean => cancelled_at !== null && Date.now() - cancelled_at.getTime() > COUNTED_FOR_MS;

const isRunning = ({ status }: ReplayRow): boolean => status === 'running';
