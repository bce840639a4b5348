import { Inject, Injectable } from '@nestjs/common';
import { type EmitterId, Unavailable } from '#contracts';
import { type Emitter, EmitterDirectory, isUncertain } from '#emitters';
import { BEFORE_ALL } from '#events';
import { Consumers } from '#messaging';
import { counter, LOG, type Log } from '#observability';
import { Rounds } from '#service';
import { EVENTS_GROUP } from './events-group.js';
import { MatchRepository } from './match.repository.js';
import { PostponedEvents } from './postponed-events.js';
import type { RecordedEvent } from './event-row.entity.js';
import { type StoredEvent, UnknownEventsRepository } from './unknown-events.repository.js';

const storedEvents = counter(
  'events_of_unknown_emitters_stored_total',
  'Events that waited in the database until the catalog had replied whether their emitter exists.',
);

const MIB = 1024 * 1024;
/** The limit of a process, in bytes: an event counts with those of its record, and with 2 KiB for its row and the indexes. */
const MOST_BYTES = 256 * MIB;
const ROW_BYTES = 2048;
const LOOK_EVERY_MS = 1000;
/** While nothing is known to wait: another process may have left some. */
const IDLE_LOOK_MS = 10_000;
/** For each MiB of events that a look has left: while the catalog does not respond, each look reads all of them, which takes 5 to 15 ms for each MiB. */
const PAUSE_MS = 25;
const LOOKED_UP_TOGETHER = 1000;
/** Nothing is planned meanwhile. */
const MOVED_TOGETHER = 100;

/** Ranges of emitter ids, the end exclusive: sources and workflows. The catalog may have to read the registrations of workflows first. */
const KINDS = [
  { start: 'dc_', end: 'dd' },
  { start: 'p_', end: 'q' },
] as const;

/**
 * Events of emitters that routing does not know, beyond those that wait for the catalog in memory: they wait in the database, so that the events of others
 * behind them, in the same partition, are read:
 *
 *   an event is read ──► its emitter is unknown, and many such events wait, or earlier ones of it wait here? ──► table unknown_event
 *                                                                                       │ the catalog has replied │
 *                                      table postponed_event ◄── its emitter exists ────┴──► it does not: deleted ┘
 *
 * Each event of an emitter that has events here follows them, so none overtakes another: they move in order, and those in memory come before them in the log,
 * so that a postponed event waits for them. The replica that has the partition looks their emitters up.
 */
@Injectable()
export class UnknownEvents {
  /** Of the events that were left at the last look, and of those that were added since it began. */
  private bytes = { left: 0, added: 0 };
  /** As from performance.now(). */
  private nextLookAt = 0;
  /** Resolves when nothing is planned or moved. */
  private idle: Promise<unknown> = Promise.resolve();

  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly repository: UnknownEventsRepository,
    private readonly emitters: EmitterDirectory,
    private readonly matching: MatchRepository,
    private readonly postponed: PostponedEvents,
    private readonly consumers: Consumers,
  ) {}

  /**
   * Calls `work` while no event moves. Between the time when an event is matched and the time when it is stored, events of its emitter that come after it in
   * the log may be there, if it is read again: they must not be postponed before it.
   */
  whileNoneMoves<T>(work: () => Promise<T>): Promise<T> {
    const done = this.idle.then(work);
    this.idle = done.catch(() => {});
    return done;
  }

  /** Whether no more events are stored: the log keeps them. */
  get isFull(): boolean {
    return this.bytes.left + this.bytes.added >= MOST_BYTES;
  }

  /** Resolves when they are in the database. Throws Unavailable if it has too many. */
  async add(events: RecordedEvent[]): Promise<void> {
    if (this.isFull) throw new Unavailable('too many events of unknown emitters wait for the catalog');
    await this.repository.add(events);
    storedEvents.inc(events.length);
    if (this.isEmpty) {
      this.nextLookAt = 0;
      this.log.warn({ emitter_id: events[0]?.event.emitterId }, 'unknown-events.stored-until-looked-up');
    }
    for (const { record } of events) this.bytes.added += ROW_BYTES + record.bytes;
  }

  @Rounds(LOOK_EVERY_MS, 'unknown-events.not-read')
  async lookIfDue(): Promise<void> {
    if (performance.now() >= this.nextLookAt) await this.look();
  }

  async look(): Promise<void> {
    if (this.isStopping) return;
    const { added } = this.bytes;
    try {
      let left = 0;
      for (const kind of KINDS) left += await this.settle(kind);
      this.bytes = { left, added: this.bytes.added - added };
    } finally {
      this.nextLookAt = performance.now() + (this.isEmpty ? IDLE_LOOK_MS : (PAUSE_MS * this.bytes.left) / MIB);
    }
  }

  /** Whether nothing is known to wait. */
  private get isEmpty(): boolean {
    return this.bytes.left + this.bytes.added === 0;
  }

  private get isStopping(): boolean {
    return this.consumers.isStopping(EVENTS_GROUP);
  }

  /**
   * Moves the events of a kind of emitters that exist, and deletes those of the others. While the catalog does not respond, only the events of emitters move
   * whose facts have arrived. Returns the bytes of those that are left.
   */
  private async settle({ start, end }: (typeof KINDS)[number]): Promise<number> {
    const partitions = this.consumers.positionsOf(EVENTS_GROUP).map(({ partition }) => partition);
    let [left, isSilent] = [0, false];
    let last: Omit<StoredEvent, 'bytes'> = { emitterId: start, place: BEFORE_ALL };
    while (!this.isStopping) {
      const events = await this.repository.next(last, end, partitions, LOOKED_UP_TOGETHER);
      if (events.length === 0) break;
      const ids = [...new Set(events.map(({ emitterId }) => emitterId))];
      const found = isSilent ? undefined : await this.find(ids);
      isSilent = !found;
      const emitters = found ?? (await this.emitters.known(ids));
      const isSettled = (id: EmitterId) => !isSilent || !isUncertain(emitters.get(id));
      for (const id of ids) {
        const emitter = emitters.get(id);
        if (emitter && isSettled(id)) await this.move(id, emitter, partitions);
      }
      if (!isSilent) await this.remove(events.filter(({ emitterId }) => !emitters.has(emitterId)));
      for (const { emitterId, bytes } of events) if (!isSettled(emitterId)) left += ROW_BYTES + bytes;
      last = events.at(-1)!;
    }
    return left;
  }

  /** Those of the emitters that exist; undefined if the catalog does not respond. */
  private async find(ids: EmitterId[]): Promise<Map<string, Emitter> | undefined> {
    try {
      return await this.emitters.find(ids);
    } catch (error) {
      this.log.warn({ err: error }, 'unknown-events.not-looked-up');
      return undefined;
    }
  }

  private async move(emitterId: EmitterId, { owner_id }: Emitter, partitions: number[]): Promise<void> {
    const some = () => this.repository.postpone(emitterId, owner_id, partitions, MOVED_TOGETHER);
    while ((await this.whileNoneMoves(some)) === MOVED_TOGETHER) this.postponed.start(owner_id);
    this.postponed.start(owner_id);
  }

  private async remove(events: StoredEvent[]): Promise<void> {
    if (events.length === 0) return;
    for (const event of await this.repository.removeUnknown(events)) this.matching.logUnknown(event);
  }
}
