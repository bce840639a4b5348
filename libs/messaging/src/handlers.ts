import type { Type } from '@nestjs/common';
import { MessagePattern } from '@nestjs/microservices';
import type { Command, Query } from '#contracts';
import type { LogRecord } from './log-record.js';
import type { Position } from './watermark.js';

/** How handling a record ended. Returning nothing means done. */
export type Outcome =
  /** Nothing had to be done. */
  | { kind: 'ignored'; reason: string }
  /** Handled again after a pause, for as long as it takes: something that the record needs is away. */
  | { kind: 'retry'; reason: string }
  /** Kept in the dead-letter topic with the reason: trying again would not help. */
  | { kind: 'rejected'; reason: string };

export const ignored = (reason: string): Outcome => ({ kind: 'ignored', reason });
export const retry = (reason: string): Outcome => ({ kind: 'retry', reason });
export const rejected = (reason: string): Outcome => ({ kind: 'rejected', reason });

/** What a handler reads: the records of a fact or of a queued command, validated by its class, or a topic whose records have no class. */
export interface Readable {
  readonly topic: string;
  readonly payload?: Type<object>;
}

/** How the consumer of a group works. */
export interface ConsumerSettings {
  /** Tasks in flight at a time. */
  concurrency?: number;
  /** Tasks in flight at a time of one group of lanes (an account, a webhook). */
  groupConcurrency?: number;
  /** Tasks in flight beyond `concurrency`, each of a group that has none in flight. */
  reserve?: number;
  /** With this many tasks outstanding, no more records are taken. */
  maxOutstanding?: number;
  /** false: the service is ready without this consumer, and does not end when it fails. */
  vital?: boolean;
  /** How often the position is committed, in ms: what a crash repeats. */
  commitEveryMs?: number;
  /** How long a record at the end of the topic may wait for others, in ms. */
  gatherMs?: number;
}

/** How a consumer works whose handler keeps the position. */
export interface FollowerSettings extends Pick<ConsumerSettings, 'vital' | 'gatherMs'> {
  /** Each process reads all partitions, from `Consumers.start` until `Consumers.stop`. */
  onDemand?: boolean;
}

/** Settings, or a function that reads them from the configuration when the service starts. */
type Lazy<T> = T | (() => T);

/** What a decorated method is for. */
export type EntryPoint =
  | { kind: 'answers'; name: string }
  | { kind: 'hears' | 'hears-batch'; source: Readable; group: string; settings: Lazy<ConsumerSettings> }
  | { kind: 'follows'; topic: string; group: string; settings: FollowerSettings }
  | { kind: 'positions'; group: string };

const entryPoint = (pattern: string, entry: EntryPoint): MethodDecorator => MessagePattern(pattern, { entry });

/** The group of all facts of a service that have no other. */
export const FACTS_GROUP = 'facts';

/** The method answers this command or query: it gets the payload, validated, and returns the reply or throws a SluiceError. */
export const Answers = (
  contract: Command<never, unknown> | Query<never, unknown> | { name: string; payload: Type<unknown> },
): MethodDecorator => entryPoint(contract.name, { kind: 'answers', name: contract.name });

/**
 * The method handles one record at a time: in order for each key, side by side with other keys. It gets the validated payload, or the LogRecord
 * where the topic's records have no class, and may get a record twice. It returns an Outcome. An error counts as `retry` when it is transient, as
 * `rejected` when the record is invalid, and otherwise as `rejected` after a few tries.
 * group: its consumer group, without the service's name; by default the group of the service's facts.
 */
export const Hears = (source: Readable, group = FACTS_GROUP, settings: Lazy<ConsumerSettings> = {}): MethodDecorator =>
  entryPoint(`${group} ${source.topic}`, { kind: 'hears', source, group, settings });

/**
 * The method plans a batch of a partition: it gets the validated payloads (or LogRecords) in the order of the topic. It returns the tasks that are
 * left to do in lanes, for each record, or nothing when it has handled the whole batch. When it throws, it gets the same batch again.
 */
export const HearsBatch = (source: Readable, group: string, settings: Lazy<ConsumerSettings> = {}): MethodDecorator =>
  entryPoint(`${group} ${source.topic}`, { kind: 'hears-batch', source, group, settings });

/** A batch of a partition for a method that keeps the position together with its effects. */
export class Batch {
  constructor(
    readonly partition: number,
    readonly records: LogRecord[],
    /** The kept position must still be this one; otherwise the method throws Fenced. */
    readonly before: Position,
    /** The position to keep, in the same transaction as the effects. */
    readonly after: Position,
  ) {}
}

/** The method takes each record of a topic once, in batches: it keeps the position itself. A method `PositionsOf` the same group returns it. */
export const Follows = (topic: string, group: string, settings: FollowerSettings = {}): MethodDecorator =>
  entryPoint(`follows ${group}`, { kind: 'follows', topic, group, settings });

/** The method returns where to take up the given partitions, a `Map<number, Position>`. A partition that it does not name is read from its beginning. */
export const PositionsOf = (group: string): MethodDecorator => entryPoint(`positions ${group}`, { kind: 'positions', group });
