import { setTimeout as sleep } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Inject, Injectable } from '@nestjs/common';
import { type EmitterId, EVENTS_TOPIC, type UserId } from '#contracts';
import { type EmittedEvent, emitterOf, type EventLogRecord, type EventPlace, eventPlace, readEventRecord } from '#events';
import { AccountPace } from '#fairness';
import { Consumers } from '#messaging';
import { counter, LOG, type Log } from '#observability';
import { SecretBox } from '#secrets';
import { Rounds } from '#service';
import { ReceiverStates } from '../deliveries/receivers/receiver-states.js';
import { RoutingConfig } from '../routing.config.js';
import { EventTasks, tenantsOf } from './event-tasks.js';
import { EVENTS_GROUP, MAX_OUTSTANDING } from './events-group.js';
import { type Match, MatchRepository } from './match.repository.js';
import { type LogPosition, type Postponed, PostponedEventsRepository } from './postponed-events.repository.js';

const postponedEvents = counter(
  'events_postponed_total',
  'Events that waited in the database because their account has many deliveries in memory.',
);

/** With fewer listeners, an event is delivered, or its deliveries are parked, about as fast as it is postponed. */
const FEW_LISTENERS = 4;
/** The share of the capacity that an account may use: as long as most of it is free, and then. */
const SHARE = { most: MAX_OUTSTANDING / 3, little: MAX_OUTSTANDING / 30, pressedFrom: 0.5 };
/** An event that is read this late, in ms, may be followed by events of others that nobody has seen yet. */
const LATE_MS = 3000;

/** The circumstances under which an event is postponed or not. */
export interface Situation {
  /** The event's listeners. */
  listeners: number;
  /** The unfinished tasks: of its account, and of all. */
  outstanding: { account: number; all: number };
  /** Whether other accounts have deliveries. */
  hasOthers: boolean;
  /** How long ago the event was emitted, in ms. */
  ageMs: number;
}

/** Whether the account has its share already, and others may have to wait for it. */
export function exceedsShare({ listeners, outstanding, hasOthers, ageMs }: Situation): boolean {
  if (listeners < FEW_LISTENERS || !(hasOthers || ageMs > LATE_MS)) return false;
  const share = outstanding.all < SHARE.pressedFrom * MAX_OUTSTANDING ? SHARE.most : SHARE.little;
  return outstanding.account + listeners > share;
}

/** From this load on, no further tasks of postponed events begin: the rest is for the events that are read. */
const LOAD = 0.75;
/** The price of a task, see `AccountPace`: it needs about a tenth of a millisecond. */
const TASK_UNITS = 0.1;
/** The tasks that begin in one turn of their account. */
const TURN = 20;
/** Of the events of an account that are in progress. */
const IN_PROGRESS_BYTES = 8 * 1024 * 1024;
const READ_AT_ONCE = 100;
const REMOVED_AT_ONCE = 1000;
const CAPACITY_LOOK_MS = 5;
const LOOK_AGAIN_MS = 20;
const LOOK_EVERY_MS = 3000;
const PAUSE_MS = 500;
const UNREAD_MS = 60_000;

/** An account that has postponed events. */
interface Account {
  id: UserId;
  /** The events in progress, by `seq`. */
  inProgress: Map<number, { emitterId: string | undefined; bytes: number }>;
  /** The number of tasks that have begun. */
  begun: number;
  /** Continues with its events. */
  work: Promise<void> | undefined;
  /** Events were added meanwhile, perhaps too late to be seen. */
  again: boolean;
}

/**
 * Events with many listeners whose account uses more than its share of the capacity: they wait in the database, so that the events of others behind them,
 * in the same partition, are read:
 *
 *   an event is read ──► earlier ones of its emitter wait, or its account has its share? ──► table postponed_event ──┐
 *                      ▼                                                                                             │ in order, as
 *                    lanes ◄─────────────────────────────────────────────────────────────────────────────────────────┘ capacity permits
 *
 * The replica that has the partition continues with them, when every record of the partition before them is done. An event stays in the table until all of
 * its tasks have ended: a crash repeats them.
 */
@Injectable()
export class PostponedEvents implements BeforeApplicationShutdown {
  private readonly accounts = new Map<UserId, Account>();
  /** Events whose tasks have ended. */
  private readonly ended: { account: Account; event: EventLogRecord }[] = [];
  private removing: Promise<void> | undefined;

  constructor(
    @Inject(LOG) private readonly log: Log,
    private readonly repository: PostponedEventsRepository,
    private readonly matching: MatchRepository,
    private readonly tasks: EventTasks,
    private readonly receivers: ReceiverStates,
    private readonly consumers: Consumers,
    private readonly config: RoutingConfig,
    private readonly box: SecretBox,
    private readonly pace: AccountPace,
  ) {}

  /**
   * For the events of a batch, in order: `isPostponed` decides whether an event is postponed, unless it does not belong to the batch any more, and
   * `include` counts it. `begin`: the tasks of those that are not postponed begin, which counts for the pace of their accounts.
   */
  decider(): {
    isPostponed(event: EmittedEvent, match: Match): boolean;
    include(event: EmittedEvent, match: Match, waits: boolean): void;
    begin(): void;
  } {
    const begun = new Map<UserId, number>();
    const emitters = new Set<string>();
    const planned = new Map<UserId, number>();
    let all = this.consumers.load(EVENTS_GROUP) * MAX_OUTSTANDING;
    const plannedOf = (account: UserId) => planned.get(account) ?? this.outstanding(account);
    const isPostponed = ({ emitterId, place }: EmittedEvent, { ownerId, postponed, listeners }: Match) =>
      postponed ||
      emitters.has(emitterId) ||
      exceedsShare({
        listeners: listeners.length,
        outstanding: { account: plannedOf(ownerId), all },
        hasOthers: this.receivers.hasOthersThan(ownerId),
        ageMs: Date.now() - place.ms,
      });
    const include = ({ emitterId }: EmittedEvent, { ownerId, listeners }: Match, waits: boolean) => {
      if (waits) return void emitters.add(emitterId);
      planned.set(ownerId, plannedOf(ownerId) + listeners.length);
      begun.set(ownerId, (begun.get(ownerId) ?? 0) + listeners.length);
      all += listeners.length;
    };
    const begin = () => begun.forEach((tasks, account) => this.pace.spend(account, tasks * TASK_UNITS));
    return { isPostponed, include, begin };
  }

  /** Resolves when they are in the database. */
  async add(events: Postponed[]): Promise<void> {
    await this.repository.add(events);
    postponedEvents.inc(events.length);
    for (const { ownerId } of events) this.start(ownerId);
  }

  /** Whether events of an emitter are in progress here that are before this one in their partition. */
  isInProgress(emitterId: EmitterId, before: EventPlace): boolean {
    return [...this.accounts.values()].some(({ inProgress }) =>
      [...inProgress].some(([seq, event]) => event.emitterId === emitterId && seq < before.seq),
    );
  }

  /** Finds those of partitions that another process had. */
  @Rounds(LOOK_EVERY_MS, 'postponed-events.not-read')
  async look(): Promise<void> {
    if (this.isStopping) return;
    for (const account of await this.repository.accounts()) this.start(account);
  }

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all([...this.accounts.values()].map(async ({ work }) => work));
    await this.removing;
  }

  private get isStopping(): boolean {
    return this.consumers.isStopping(EVENTS_GROUP);
  }

  /** Continues with the events of an account. */
  start(id: UserId): void {
    const account = this.accounts.get(id) ?? {
      id,
      inProgress: new Map(),
      begun: 0,
      work: undefined,
      again: false,
    };
    this.accounts.set(id, account);
    account.again = account.work !== undefined;
    account.work ??= this.work(account)
      .catch((error: Error) => this.log.warn({ account_id: id, err: error }, 'postponed-events.not-read'))
      .finally(() => {
        account.work = undefined;
        if (account.again && !this.isStopping) this.start(id);
        else this.forget(account);
      });
  }

  private forget(account: Account): void {
    if (!account.work && account.inProgress.size === 0 && this.accounts.get(account.id) === account) this.accounts.delete(account.id);
  }

  /** Continues with the events of an account in our partitions until all that are left are in progress. */
  private async work(account: Account): Promise<void> {
    while (!this.isStopping) {
      const positions = this.consumers.positionsOf(EVENTS_GROUP).map((position) => (isUnread(position) ? beforeNow(position) : position));
      const partitions = positions.map(({ partition }) => partition);
      const except = [...account.inProgress.keys()];
      const bytes = [...account.inProgress.values()].reduce((left, { bytes }) => left - bytes, IN_PROGRESS_BYTES);
      const next = bytes > 0 ? await this.repository.next(account.id, positions, { except, limit: READ_AT_ONCE, bytes }) : [];
      if (next.length > 0) await this.begin(account, next);
      else if (await this.repository.has(account.id, partitions, except)) await sleep(LOOK_AGAIN_MS);
      else return;
    }
  }

  private async begin(account: Account, records: EventLogRecord[]): Promise<void> {
    const events = records.flatMap((record) => {
      const read = readEventRecord(record, { maxBytes: this.config.maxEventBytes, signer: this.box });
      if (read.kind === 'event') return [{ record, event: read }];
      // it has become too large for the present settings
      this.take(account, record);
      this.end(account, record);
      return [];
    });
    const { matches } = await this.matching.match(events.map(({ event }) => event));
    for (const [index, match] of matches.entries()) {
      const { record, event } = events[index]!;
      if (this.isStopping) return;
      this.take(account, record);
      const ended: Promise<boolean>[] = [];
      // its emitter may have been removed meanwhile
      const present = this.matching.lookedUp(event, match);
      for (const task of present ? this.tasks.of(event, present) : []) {
        ended.push(this.consumers.pushFor(EVENTS_GROUP, { topic: EVENTS_TOPIC, partition: record.partition }, task));
        if (++account.begun % TURN === 0) await this.pace.runTurn(account.id, TURN * TASK_UNITS);
        await this.capacity(account.id);
      }
      void Promise.all(ended).then((done) => {
        // the rest belongs to another process
        if (done.includes(false)) this.leave(account, record);
        else this.end(account, record);
      });
    }
  }

  private take(account: Account, record: EventLogRecord): void {
    account.inProgress.set(eventPlace(record).seq, { emitterId: emitterOf(record), bytes: record.value?.length ?? 0 });
  }

  private async capacity(account: UserId): Promise<void> {
    const isFull = () => this.outstanding(account) >= SHARE.most || this.consumers.load(EVENTS_GROUP) > LOAD;
    while (isFull() && !this.isStopping) await sleep(CAPACITY_LOOK_MS);
  }

  /** The number of unfinished tasks of an account. */
  private outstanding(account: UserId): number {
    return tenantsOf(account).reduce((sum, tenant) => sum + this.consumers.outstandingOf(EVENTS_GROUP, tenant), 0);
  }

  private end(account: Account, event: EventLogRecord): void {
    this.ended.push({ account, event });
    this.removing ??= this.removeEnded().finally(() => (this.removing = undefined));
  }

  private async removeEnded(): Promise<void> {
    while (this.ended.length > 0) {
      // many end together
      await sleep(LOOK_AGAIN_MS);
      const some = this.ended.slice(0, REMOVED_AT_ONCE);
      try {
        await this.repository.remove(some.map(({ event }) => eventPlace(event)));
      } catch (error) {
        this.log.warn({ err: error }, 'postponed-events.not-removed');
        if (this.isStopping) return;
        await sleep(PAUSE_MS);
        continue;
      }
      this.ended.splice(0, some.length);
      for (const { account, event } of some) this.leave(account, event);
    }
  }

  private leave(account: Account, record: EventLogRecord): void {
    account.inProgress.delete(eventPlace(record).seq);
    this.forget(account);
  }
}

/** The position of a partition from which nothing has been read. */
const isUnread = ({ offset }: LogPosition): boolean => offset === 0;

/** Postponed events of a partition that is unread for long belong to an earlier log. */
const beforeNow = (position: LogPosition): LogPosition => ({ ...position, clock: Date.now() - UNREAD_MS });
