import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { EVENTS_TOPIC, isId, type UserId } from '#contracts';
import { coversStream, type EmittedEvent, eventIdOf, EVERY_STREAM } from '#events';
import { type OutgoingRecord, Publisher, type Sender, type Task } from '#messaging';
import { counter, LOG, type Log } from '#observability';
import { Stats } from '#stats';
import { deliveryOf } from '../deliveries/delivery.js';
import { Dispatcher } from '../deliveries/direct/dispatcher.js';
import { errorFact } from '../error-records.js';
import type { Match } from './match.repository.js';
import { isTooWide, loopReport, MAX_RUNS, MAX_SPREAD, mayTrigger, runsOf, SendLane, workflowRecord } from './triggers.js';

const routed = counter('events_routed_total', 'Events that were matched with listeners.');
const loops = counter(
  'events_looping_total',
  'Events that triggered nothing because they had passed through too many sources and workflows.',
);

/** The lane of an account's records to Kafka, and its tenant: not that of the deliveries, so that they do not wait for slow webhooks. */
const laneOfTriggers = (account: UserId): string => `triggers ${account}`;

/** The tenant of the deletions of an account's events, which must not wait for slow webhooks either. */
export const tenantOfDeletions = (account: UserId): string => `deletions ${account}`;

/** The tenants of the tasks of an account. */
export const tenantsOf = (account: UserId): string[] => [account, laneOfTriggers(account), tenantOfDeletions(account)];

/** Makes the task count its event when it runs for the first time, and no sooner: tasks that a rebalance drops are made again elsewhere. */
function counting(task: Task, count: () => void): Task {
  const run = task.run.bind(task);
  let isCounted = false;
  task.run = (release) => {
    if (!isCounted) count();
    isCounted = true;
    return run(release);
  };
  return task;
}

/** Makes the tasks of an event for its listeners. */
@Injectable()
export class EventTasks {
  /**
   * One lane for each account whose records wait, and for all partitions: the events of an emitter keep their order, and a large event with many listeners
   * does not delay the events of other accounts.
   */
  private readonly triggers = new Map<UserId, SendLane>();
  /** Trees that were reported as too wide. */
  private readonly wideTrees = new LRUCache<string, true>({ max: 10_000 });
  /** The runs of each cause, until it has had none for an hour. */
  private readonly runs = new LRUCache<string, number>({ max: 10_000, ttl: 3_600_000 });

  private readonly sender: Sender;

  constructor(
    @Inject(LOG) private readonly log: Log,
    publisher: Publisher,
    private readonly dispatcher: Dispatcher,
    private readonly stats: Stats,
  ) {
    this.sender = { publisher, service: 'routing', log };
  }

  /**
   * The tasks of an event: one for all records to Kafka, and one per webhook, each made when it is needed. `triggers`: the lane of the records; by default
   * that of the account.
   */
  *of(event: EmittedEvent, match: Match, triggers = () => this.triggersOf(match.ownerId)): Generator<Task> {
    let first: Task | undefined;
    for (const task of this.tasks(event, match, triggers)) {
      first ??= counting(task, () => this.count(event));
      yield task;
    }
    if (!first) this.count(event);
  }

  private count({ emitterId, stream, place }: EmittedEvent): void {
    routed.inc();
    if (coversStream(EVERY_STREAM, stream)) this.stats.countEvent(emitterId, place.ms);
  }

  private *tasks(event: EmittedEvent, match: Match, triggers: () => SendLane): Generator<Task> {
    const records = this.recordsOf(event, match);
    if (records) yield triggers().task(records);
    for (const { id, version } of match.listeners) {
      if (isId('webhook', id) && version !== null) yield this.dispatcher.firstAttempt(deliveryOf(event, id), version, match.ownerId);
    }
  }

  private triggersOf(ownerId: UserId): SendLane {
    let lane = this.triggers.get(ownerId);
    if (!lane) {
      const key = laneOfTriggers(ownerId);
      lane = new SendLane(this.sender, { lane: key, tenant: key }, () => this.triggers.delete(ownerId));
      this.triggers.set(ownerId, lane);
    }
    return lane;
  }

  /** The event's records for sources, workflows and the mail; undefined if there are none. Each run has a copy of the event, so they are made one by one. */
  private recordsOf(event: EmittedEvent, { ownerId, listeners }: Match): Iterable<OutgoingRecord> | undefined {
    const fact = errorFact(event, ownerId);
    const records: OutgoingRecord[] = fact ? [fact] : [];
    const triggered = listeners.filter(({ id }) => !isId('webhook', id));
    if (triggered.length === 0) return fact && records;
    const branches = this.hasUsedUp(event, ownerId, triggered.length) ? MAX_SPREAD + 1 : triggered.length;
    if (mayTrigger(event, branches)) {
      return {
        *[Symbol.iterator]() {
          yield* records;
          const runOf = runsOf(event, ownerId, triggered.length);
          for (const { id } of triggered) {
            if (isId('source', id)) yield runOf(id);
            else if (isId('workflow', id)) yield workflowRecord(event, id, triggered.length);
          }
        },
      };
    }
    loops.inc();
    // of a wide tree, one event of each emitter is enough: its events come through one partition, and so to one replica
    const tree = isTooWide(event, branches) && event.cause ? `${event.cause.root} ${event.emitterId}` : undefined;
    const report = tree !== undefined && this.wideTrees.has(tree) ? undefined : loopReport(event, ownerId, branches);
    if (!report) return fact && records;
    if (tree !== undefined) this.wideTrees.set(tree, true);
    this.log.warn({ emitter_id: event.emitterId, event_id: eventIdOf(event.place), hops: event.hops }, 'event.loop-detected');
    records.push({ topic: EVENTS_TOPIC, ...report });
    return records;
  }

  /** Counts the runs of the event's cause in its account: producers choose emit ids, and so roots. Returns true if it has had too many. */
  private hasUsedUp({ cause }: EmittedEvent, ownerId: UserId, triggered: number): boolean {
    if (!cause) return false;
    const key = `${ownerId} ${cause.root}`;
    const runs = this.runs.get(key) ?? 0;
    if (runs + triggered > MAX_RUNS) return true;
    this.runs.set(key, runs + triggered);
    return false;
  }
}
