import type { Type } from '@nestjs/common';
import { MessagePattern } from '@nestjs/microservices';
import type { Contract } from '#contracts';
import type { LogRecord } from './log-record.js';
import type { Position } from './watermark.js';

/** The outcome of handling a record. Returning nothing means done. */
export type Outcome =
  /** The record needed no work. */
  | { kind: 'ignored'; reason: string }
  /** Copied to the dead-letter topic with the reason, because a retry would not help. */
  | { kind: 'rejected'; reason: string };

export const ignored = (reason: string): Outcome => ({ kind: 'ignored', reason });
export const rejected = (reason: string): Outcome => ({ kind: 'rejected', reason });

/** The source of a handler's records: a fact or a queued command, validated by its class, or a topic whose records have no class. */
export interface Readable {
  readonly topic: string;
  readonly payload?: Type<object>;
}

/** The settings of a group's consumer, equal at all of its methods. */
export interface ConsumerSettings {
  /** The maximum number of tasks in progress. */
  concurrency?: number;
  /** The maximum number of tasks in progress for one group of lanes (an account, a webhook); without it, only `concurrency` applies. */
  groupConcurrency?: number;
  /** The same while no other group has work; by default `groupConcurrency`. */
  loneGroupConcurrency?: number;
  /** For `Consumes`: the group of a payload's lane; by default, each lane is one. */
  groupOf?(payload: never): string;
  /** The maximum number of tasks in progress for one tenant of groups (an account with many webhooks), so that many slow groups do not use up the rest either. */
  tenantConcurrency?: number;
  /** Additional tasks beyond `concurrency`, each for a tenant, or a group without one, that has none in progress. */
  reserve?: number;
  /** With this many outstanding tasks of records, no more are accepted. The last call of `plan` may have gone beyond it. */
  maxOutstanding?: number;
  /** false: the service is ready without this consumer, and continues if it fails. */
  vital?: boolean;
  /** Commit interval in ms; a crash repeats at most this much finished work. */
  commitEveryMs?: number;
  /** How long a record at the end of the topic may wait for others, in ms. */
  gatherMs?: number;
}

/** The settings of a consumer whose handler stores the position. */
export interface FollowerSettings extends Pick<ConsumerSettings, 'vital' | 'gatherMs'> {
  /** Each process reads all partitions, from `Consumers.start` until `Consumers.stop`. */
  onDemand?: boolean;
}

/** Settings, or a function that reads them from the configuration when the service starts. */
type Lazy<T> = T | (() => T);

/** The purpose of a decorated method. */
export type EntryPoint =
  | { kind: 'handles'; name: string; changes: boolean }
  | { kind: 'consumes' | 'consumes-batch'; source: Readable; group: string; settings: Lazy<ConsumerSettings> }
  | { kind: 'follows'; topic: string; group: string; settings: FollowerSettings }
  | { kind: 'positions'; group: string };

const entryPoint = (pattern: string, entry: EntryPoint): MethodDecorator => MessagePattern(pattern, { entry });

/** The default group of the facts of a service. */
const FACTS_GROUP = 'facts';

/** An entry point whose parameter must be of the class of the payload: Nest drops the fields that the parameter's class does not have. */
const typedEntryPoint =
  (pattern: string, payload: Type<unknown> | undefined, entry: EntryPoint): MethodDecorator =>
  (target, method, descriptor) => {
    const [parameter] = (Reflect.getMetadata('design:paramtypes', target, method) ?? []) as Type<unknown>[];
    if (payload !== undefined && parameter !== undefined && parameter !== payload) {
      throw new Error(`${target.constructor.name}.${String(method)} has to take a ${payload.name}`);
    }
    entryPoint(pattern, entry)(target, method, descriptor);
  };

/**
 * The method handles this command or query: it receives the validated payload, and returns the reply or throws a SluiceError.
 * @throws Error if its parameter is of another class
 */
export const Handles = (contract: { kind?: Contract<unknown>['kind']; name: string; payload: Type<unknown> }): MethodDecorator =>
  typedEntryPoint(contract.name, contract.payload, { kind: 'handles', name: contract.name, changes: contract.kind === 'command' });

/**
 * The method handles one record at a time: in order for each key, concurrently with other keys. It receives the validated payload, or the LogRecord
 * if the topic's records have no class, and may receive a record twice. It returns an Outcome. If it throws, the record is retried while the error is
 * transient, rejected if it is invalid, and otherwise rejected after a few attempts.
 * group: its consumer group, without the service's name; by default the group of the service's facts.
 * @throws Error if its parameter is of another class
 */
export const Consumes = (source: Readable, group = FACTS_GROUP, settings: Lazy<ConsumerSettings> = {}): MethodDecorator =>
  typedEntryPoint(`${group} ${source.topic}`, source.payload, { kind: 'consumes', source, group, settings });

/**
 * The method plans a batch of records of one topic, in order within each partition: it receives the validated payloads (or LogRecords). It returns the
 * remaining tasks of each record, to run in lanes, or nothing if it has handled the whole batch. A method that receives LogRecords may return the tasks of
 * the first ones only, at least of one. If it throws, the same batch is repeated.
 */
export const ConsumesBatch = (source: Readable, group: string, settings: Lazy<ConsumerSettings> = {}): MethodDecorator =>
  entryPoint(`${group} ${source.topic}`, { kind: 'consumes-batch', source, group, settings });

/** A batch of a partition for a method that stores the position together with its effects. */
export class Batch {
  constructor(
    readonly partition: number,
    readonly records: LogRecord[],
    /** The stored position must still be this one; otherwise the method throws Fenced. */
    readonly before: Position,
    /** The position to store, in the same transaction as the effects. */
    readonly after: Position,
  ) {}
}

/** The method receives each record of a topic once, in batches, and stores the position itself. A method `PositionsOf` the same group returns it. */
export const Follows = (topic: string, group: string, settings: FollowerSettings = {}): MethodDecorator =>
  entryPoint(`follows ${group}`, { kind: 'follows', topic, group, settings });

/** The method returns the stored positions of the given partitions, a `Map<number, Position>`. A partition without one is read from its beginning. */
export const PositionsOf = (group: string): MethodDecorator => entryPoint(`positions ${group}`, { kind: 'positions', group });
