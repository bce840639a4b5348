import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { isId, type UserId } from '#contracts';
import { type DeletedRange, type EmittedEvent, readEventRecord, WAITING_STREAM } from '#events';
import { type Emitter, EmitterDirectory } from '#emitters';
import { laneFailures, type LogRecord, Publisher, type Sender, type Task } from '#messaging';
import { isTransient } from '#database';
import { counter, LOG, type Log } from '#observability';
import { SecretBox } from '#secrets';
import { RoutingConfig } from '../routing.config.js';
import { EventTasks } from './event-tasks.js';
import { MalformedRecords } from './malformed-records.js';
import { type Match, MatchRepository } from './match.repository.js';
import { once } from './once.js';
import { PostponedEvents } from './postponed-events.js';
import type { RecordedEvent } from './event-row.entity.js';
import type { Postponed } from './postponed-events.repository.js';
import { SendLane } from './triggers.js';
import { UnknownEmitters } from './unknown-emitters.js';
import { UnknownEvents } from './unknown-events.js';
import { Withdrawals } from './withdrawals.js';

const repeats = counter(
  'events_repeated_by_relay_total',
  'Second copies of events, sent by a relay that was interrupted, which were not routed.',
);

/**
 * The size of what is planned together, which the events of others wait for: a listener counts once, and once more for each 4 KiB of the event, because
 * the run of a source has a copy of it.
 */
const PLANNED = { size: 6_000, bytes: 4096 };

/** The match of an event of an unknown emitter in a batch. */
type Introduction = (event: EmittedEvent) => Promise<Match | undefined>;

/** Turns records of the topic `events` into tasks for their listeners. */
@Injectable()
export class Router {
  private readonly unknownEmitters: UnknownEmitters;
  private readonly repeated = new RepeatedEmits();
  private readonly sender: Sender;
  private readonly malformed: MalformedRecords;

  constructor(
    @Inject(LOG) log: Log,
    publisher: Publisher,
    private readonly matching: MatchRepository,
    private readonly tasks: EventTasks,
    private readonly postponed: PostponedEvents,
    private readonly unknownEvents: UnknownEvents,
    private readonly config: RoutingConfig,
    private readonly withdrawals: Withdrawals,
    private readonly box: SecretBox,
    private readonly emitters: EmitterDirectory,
  ) {
    this.sender = { publisher, service: 'routing', log };
    this.malformed = new MalformedRecords(this.sender, emitters);
    this.unknownEmitters = new UnknownEmitters({
      groupConcurrency: config.webhookConcurrency,
      onFailure: laneFailures(log, { group: 'unknown emitters', isTransient }),
    });
  }

  /**
   * The tasks of records of one topic, in order within each partition: of all of them, or only of the first ones if they have very many listeners
   * together.
   */
  plan(records: LogRecord[]): Promise<Task[][]> {
    return this.unknownEvents.whileNoneMoves(() => this.planBatch(records));
  }

  private async planBatch(records: LogRecord[]): Promise<Task[][]> {
    const reads = records.map((record) => this.read(record));
    const events = reads.filter((read) => read?.kind === 'event');
    const { matches, stored } = await this.matching.match(events);
    const introduce = this.introduction(
      matches.flatMap((match, index) => (match && !match.isRemoved ? [] : [events[index] as EmittedEvent])),
    );
    const ownerOf = await this.ownersOf(reads.filter((read) => read?.kind === 'delete'));
    const tasksOfMalformed = this.malformed.batch(reads.filter((read) => read?.kind === 'malformed'));
    const decider = this.postponed.decider();
    // a task counts for its receiver or emitter as soon as it is made, so tasks are made after the waiting events are stored
    const steps: (() => Task[])[] = [];
    const postponed: Postponed[] = [];
    const unknown: RecordedEvent[] = [];
    const fits = this.unknownEmitters.capacity();
    let [matched, size] = [0, 0];
    for (const [index, read] of reads.entries()) {
      const record = records[index] as LogRecord;
      if (read?.kind === 'event') {
        // only the first events were matched
        if (matched === matches.length) break;
        const match = matches[matched++];
        const isStored = stored.has(read.emitterId) || (this.isUnknown(read, match) && !fits(read));
        const waits = isStored || (match !== undefined && decider.isPostponed(read, match));
        size += (waits ? 1 : (match?.listeners.length ?? 1)) * (1 + read.json.length / PLANNED.bytes);
        if (size > PLANNED.size && steps.length > 0) break;
        if (isStored) {
          // those before it need not wait until there is capacity
          if (this.unknownEvents.isFull && steps.length > 0) break;
          stored.add(read.emitterId);
          unknown.push({ event: read, record });
        } else if (match) {
          decider.include(read, match, waits);
          if (waits) postponed.push({ ownerId: match.ownerId, event: read, record });
        }
        steps.push(() => (waits ? [] : this.tasksOfRead(read, match, introduce)));
      } else if (read?.kind === 'malformed') {
        steps.push(() => tasksOfMalformed(record, read));
      } else steps.push(() => (read ? [this.withdrawals.task(read, ownerOf(read))] : []));
    }
    // if this fails, the records are planned again: none has begun yet
    if (unknown.length > 0) await this.unknownEvents.add(unknown);
    if (postponed.length > 0) await this.postponed.add(postponed);
    decider.begin();
    return steps.map((tasks) => tasks());
  }

  /** The content of a record; undefined if there is nothing to do, because it waits or was read before. */
  private read(record: LogRecord): ReturnType<typeof readEventRecord> | undefined {
    const read = readEventRecord(record, { maxBytes: this.config.maxEventBytes, signer: this.box });
    if (read.kind !== 'event') return read;
    // a waiting emit is not emitted yet
    if (read.stream === WAITING_STREAM) return undefined;
    if (!this.repeated.isRepeated(read)) return read;
    repeats.inc();
    return undefined;
  }

  /** Whether the catalog has to be queried for the event, or for an earlier one of its emitter. */
  private isUnknown({ emitterId }: EmittedEvent, match: Match | undefined): boolean {
    return !match || match.isRemoved === true || this.unknownEmitters.has(emitterId);
  }

  private tasksOfRead(event: EmittedEvent, match: Match | undefined, introduce: Introduction): Task[] {
    if (match && !this.isUnknown(event, match)) return [...this.tasks.of(event, match)];
    const isIntroduced = match && !match.isRemoved;
    return [this.unknownEmitters.task(event, async () => this.tasksOfUnknown(event, isIntroduced ? match : await introduce(event)))];
  }

  /** Looks up all unknown emitters of a batch at once, when the first of their events has its turn; again after a failure. */
  private introduction(events: EmittedEvent[]): Introduction {
    const isOfWorkflow = ({ emitterId }: EmittedEvent): boolean => isId('workflow', emitterId);
    const byKind = Map.groupBy(events, isOfWorkflow);
    const matchesOf = (some: EmittedEvent[] = []) =>
      once(async () => {
        const matches = await this.matching.introduce(some);
        return new Map(some.map((event, index) => [event, matches[index]]));
      });
    const ofSources = matchesOf(byKind.get(false));
    // separately: the catalog may have to read their registrations first
    const ofWorkflows = matchesOf(byKind.get(true));
    return async (event) => (await (isOfWorkflow(event) ? ofWorkflows() : ofSources())).get(event);
  }

  /** The owners of the emitters of deletions, as far as they are known. */
  private async ownersOf(deletions: DeletedRange[]): Promise<(range: DeletedRange) => UserId | undefined> {
    const known =
      deletions.length === 0 ? new Map<string, Emitter>() : await this.emitters.known(deletions.map(({ emitterId }) => emitterId));
    return ({ emitterId }) => known.get(emitterId)?.owner_id;
  }

  private tasksOfUnknown(event: EmittedEvent, match: Match | undefined): Task[] {
    return match ? [...this.tasks.of(event, match, () => new SendLane(this.sender, { lane: `triggers ${event.emitterId}` }))] : [];
  }
}

const REMEMBERED = 20_000;

/**
 * Recognises records that a relay has sent twice: its process died after Kafka had the records and before they left the outbox. Both copies have the
 * same emit id and, because of their key, the same partition. Only records of an outbox are remembered, and only the newest ones: the second copy
 * follows within seconds.
 */
class RepeatedEmits {
  private readonly places = new LRUCache<string, number>({ max: REMEMBERED });

  /** True for the second copy. The first one remains the first if it is read again, after a rebalance or a failure. */
  isRepeated({ emitterId, stream, emitId, place, fromOutbox }: EmittedEvent): boolean {
    if (!fromOutbox) return false;
    const emit = `${emitterId} ${stream} ${emitId}`;
    const first = this.places.get(emit);
    if (first !== undefined && first < place.seq) return true;
    this.places.set(emit, place.seq);
    return false;
  }
}
