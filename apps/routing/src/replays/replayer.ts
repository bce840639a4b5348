import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { setTimeout as sleep } from 'node:timers/promises';
import { findRunOutcomes, isId, isNotFound, type ReplayId, type RunOutcomes, SluiceError, type SourceId, type UserId } from '#contracts';
import { type EmittedEvent, eventIdOf, logPlaceOf, runIdOf } from '#events';
import { Messages, type OutgoingRecord, Publisher, sendOrSetAside } from '#messaging';
import { LOG, type Log } from '#observability';
import { FullAccounts } from '#waiting-data';
import { deliveryOf } from '../deliveries/delivery.js';
import { DeliveredRepository } from '../deliveries/history/delivered.repository.js';
import { DeliveredLog } from '../deliveries/history/delivered-log.js';
import { ParkedDeliveriesRepository } from '../deliveries/store/parked-deliveries.repository.js';
import { runsOf, workflowRecord } from '../routes/triggers.js';
import { type Outcomes, type ReplayRow, ReplaysRepository } from './replays.repository.js';
import { type PartDeletions, ReplayLog } from './replay-log.js';

/** Replays are looked for in this interval. */
const LOOK_MS = 1000;
/** The turn of a replay while others wait. */
const TURN_MS = 10_000;
/** Between two steps of a replay. */
const PAUSE_MS = 100;
/** Steps of a turn that only wait, one after another: long enough for a batch to be attempted by a receiver that responds. */
const MAX_WAITS = 10;
/** After a turn that ended because its replay had to wait. */
const REST_MS = 2000;
/** Read from the log at once. */
const CHUNK = 2000;
/** The size of a batch, in bytes; the last event may exceed it. */
const BATCH_BYTES = 1024 * 1024;
/** A batch that has ended within this time is followed by one that is twice as large, others by smaller ones: live events may have to wait for a batch. */
const FAST_MS = 500;
/** A run that has neither ended nor waits after this time has been dropped or lost. */
const RUN_LOST_MS = 3_600_000;
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
  deletions: PartDeletions;
  /** How many the next batch has. */
  size: number;
  /** When the batch that waits was handed over in this turn, in ms of the process's clock. */
  since: number | undefined;
}

/** A step has `waited` for other work, `read` without anything to deliver, or `delivered`. */
type Step = 'waited' | 'read' | 'delivered';

/**
 * Carries out replays in turns, one at a time, a few deliveries at a time. The accounts take turns, and then the replays of each:
 *
 *   claimed ─► wait until nothing live is due ─► hand a batch over ─► wait for its first attempts, or its runs ─► …
 *                                                                                     cancelled ─► end it ◄─┘
 *
 * A turn that begins by waiting ends at once, another one after a second of waiting, and any after ten seconds if others wait: replays whose receivers do not
 * respond cost others nothing.
 * A webhook's backlog delivers the batch, at its rate, with the same message ids as before; the runtime runs a source for each of its events. Nothing reports
 * when a workflow has handled an event, so its batches follow each other. The progress of the replay is stored with each batch: another replica continues
 * when this one stops.
 */
@Injectable()
export class Replayer implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private stopping = false;
  /** As from performance.now(). At the start, too: the process may end within an hour. */
  private swept = -Infinity;
  private work: Promise<void> = Promise.resolve();

  constructor(
    private readonly replays: ReplaysRepository,
    private readonly replayLog: ReplayLog,
    private readonly parked: ParkedDeliveriesRepository,
    private readonly delivered: DeliveredRepository,
    private readonly deliveredLog: DeliveredLog,
    private readonly messages: Messages,
    private readonly publisher: Publisher,
    private readonly full: FullAccounts,
    @Inject(LOG) private readonly log: Log,
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
        this.log.warn({ err: error }, 'replay.interrupted');
        return false;
      });
      if (!wasTurn) await sleep(LOOK_MS, undefined, { ref: false });
    }
  }

  /** False if it was no replay's turn. */
  private async turn(): Promise<boolean> {
    if (performance.now() - this.swept > HOUR_MS) {
      this.swept = performance.now();
      await this.replays.deleteOld();
    }
    const row = await this.replays.claim();
    if (row) await this.carryOut(row);
    return row !== undefined;
  }

  private async carryOut(row: ReplayRow): Promise<void> {
    const { offsets, clocks } = row;
    const deletions = this.replayLog.deletionsOf(row);
    const work: Work = { row, ahead: [], behind: { offsets, clocks }, last: false, deletions, size: sizesOf(row).first, since: undefined };
    const until = performance.now() + TURN_MS;
    let waits = MAX_WAITS;
    for (let restMs: number | undefined; restMs === undefined;) {
      const did = await this.step(work);
      waits = did === 'waited' ? waits + 1 : 0;
      if (waits > MAX_WAITS) restMs = REST_MS;
      else if (!isRunning(row) || this.stopping || (performance.now() >= until && (await this.replays.anyWaits()))) restMs = 0;
      // false: it has ended, or another replica continues it
      if (!(await this.replays.save(row, { restMs }))) return;
      if (restMs === undefined && did !== 'read') await sleep(PAUSE_MS);
    }
    if (isRunning(row)) return;
    const { id, status, events, delivered, failed } = row;
    this.log.info({ replay_id: id, events, delivered, failed }, `replay.${status}`);
  }

  private async step(work: Work): Promise<Step> {
    const { row } = work;
    const { waiting, delivered, failed } = await this.outcomes(row);
    if (waiting > 0 && !isOverdue(row)) return 'waited';
    row.delivered += delivered;
    row.failed += failed;
    row.parked = [];
    fitSize(work);
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
    const batch = nextBatch(work);
    const events = await this.kept(
      work,
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
    work.since = performance.now();
    if (events.length > 0) await this.deliver(row, events);
    work.ahead = work.ahead.slice(batch.length);
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
      this.log.info({ replay_id: row.id, events: gone }, 'replay.events-gone');
      row.failed += gone;
    }
    row.status = 'done';
  }

  /** While its account is full, or live deliveries to its webhook are due, or live runs of its source wait: those go first. */
  private async mustWait({ owner_id, listener_id: listener }: ReplayRow): Promise<boolean> {
    if (await this.full.isFull(owner_id)) return true;
    if (isId('webhook', listener)) return this.replays.hasDue(listener);
    return isId('source', listener) && (await this.runs(owner_id, listener, [])).others_wait;
  }

  private async outcomes({ owner_id, listener_id: listener, parked, parked_at }: ReplayRow): Promise<Outcomes> {
    if (parked.length === 0 || !isId('source', listener)) return this.replays.outcomes({ listener_id: listener, parked });
    const { succeeded, failed, queued } = await this.runs(owner_id, listener, parked);
    const isLate = parked_at !== null && Date.now() - parked_at.getTime() > RUN_LOST_MS;
    const hasEnded = (id: string) => succeeded.includes(id) || failed.includes(id);
    // several copies of an emit have the same run
    const delivered = parked.filter((id) => succeeded.includes(id)).length;
    const waiting = parked.filter((id) => !hasEnded(id) && (!isLate || queued.includes(id))).length;
    return { waiting, delivered, failed: parked.length - waiting - delivered };
  }

  private runs(owner_id: UserId, source_id: SourceId, run_ids: string[]): Promise<RunOutcomes> {
    return this.messages.request(findRunOutcomes, { owner_id, source_id, run_ids }, { account: owner_id });
  }

  /** False if the replay cannot be continued. */
  private async readOn(work: Work): Promise<boolean> {
    const chunk = await this.replayLog.next({ ...work.row, ...work.behind }, work.deletions, CHUNK).catch(this.ifImpossible(work.row));
    if (!chunk) return false;
    const { events, offsets, clocks, last } = chunk;
    work.ahead = events.map((event) => ({ event, ...logPlaceOf(event.place) }));
    work.behind = { offsets, clocks };
    work.last = last;
    return true;
  }

  /** The events that were not deleted since the log was read, which may be a turn ago. Undefined if the replay cannot be continued. */
  private kept({ row, deletions }: Work, events: EmittedEvent[]): Promise<EmittedEvent[] | undefined> {
    const look = async () => {
      await deletions.refresh();
      return events.filter((event) => !deletions.include(event));
    };
    return look().catch(this.ifImpossible(row));
  }

  /**
   * Handles an error after which the replay cannot be continued: its emitter was deleted, which the fact of its deletion may have missed, because the replay was
   * being created; or more deletions concern its events than can be considered. Throws any other error.
   */
  private ifImpossible({ id }: ReplayRow): (error: unknown) => undefined {
    return (error) => {
      if (!isNotFound(error) && !(error instanceof SluiceError && error.code === 'unprocessable')) throw error;
      this.log.warn({ replay_id: id, err: error }, 'replay.impossible');
    };
  }

  private async deliver(row: ReplayRow, events: EmittedEvent[]): Promise<void> {
    const { id, owner_id, listener_id: listener } = row;
    if (isId('webhook', listener)) {
      // the attempts that this process made a moment ago
      await this.deliveredLog.flush(listener);
      const places = events.map(({ place }) => place);
      const before = await this.delivered.findAll(owner_id, listener, places);
      const deliveries = events.map((event, index) => ({ delivery: deliveryOf(event, listener), attempts: before[index]?.attempts ?? [] }));
      const parked = await this.parked.parkAgain(owner_id, listener, deliveries, { fresh: true });
      // otherwise, the webhook was deleted meanwhile
      if (parked.length > 0) row.parked = places.map(eventIdOf);
      else row.status = 'cancelled';
    } else if (isId('source', listener)) {
      const runs = events.map((event) => {
        const runId = replayRunId(id, event, listener);
        return { runId, record: runsOf(event, owner_id)(listener, runId) };
      });
      const refused = await this.send(runs.map(({ record }) => record));
      row.failed += refused.length;
      row.parked = runs.filter(({ record }) => !refused.includes(record)).map(({ runId }) => runId);
      row.parked_at = new Date();
    } else {
      const refused = await this.send(events.map((event) => workflowRecord(event, listener)));
      row.failed += refused.length;
      row.delivered += events.length - refused.length;
    }
  }

  private send(records: OutgoingRecord[]): Promise<OutgoingRecord[]> {
    return sendOrSetAside(records, { publisher: this.publisher, service: 'routing', log: this.log });
  }
}

/** The id of the run that a replay makes of a source for an event: the same one for several copies of an emit, as when they are live. */
export const replayRunId = (id: ReplayId, event: EmittedEvent, sourceId: SourceId): string => `${id}-${runIdOf(event, sourceId)}`;

/**
 * How many events the first batch of a turn has, and the largest one. Live runs of a source wait for the batch, and more runs would have to wait in the
 * runtime's database. Live deliveries to a webhook wait for it only if the webhook has a rate, or its receiver fails. What a workflow does with its events
 * is not known.
 */
function sizesOf({ listener_id }: ReplayRow): { first: number; most: number } {
  if (isId('webhook', listener_id)) return { first: 20, most: 200 };
  return isId('source', listener_id) ? { first: 1, most: 20 } : { first: 10, most: 10 };
}

/** Fits the size of the next batch to the time that the last one took. */
function fitSize(work: Work): void {
  if (work.since === undefined) return;
  const { first, most } = sizesOf(work.row);
  const isFast = performance.now() - work.since < FAST_MS;
  work.size = isFast ? Math.min(most, work.size * 2) : Math.max(first, work.size >> 1);
  work.since = undefined;
}

function nextBatch({ ahead, size }: Work): Work['ahead'] {
  let bytes = 0;
  return ahead.slice(0, size).filter(({ event }) => {
    const isWithin = bytes < BATCH_BYTES;
    bytes += event.json.length;
    return isWithin;
  });
}

/** Its receiver is slow or failing, or its listener is not active: the deliveries and runs that still wait are not counted. */
const isOverdue = ({ cancelled_at }: ReplayRow): boolean => cancelled_at !== null && Date.now() - cancelled_at.getTime() > COUNTED_FOR_MS;

const isRunning = ({ status }: ReplayRow): boolean => status === 'running';
