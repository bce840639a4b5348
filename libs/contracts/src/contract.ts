import type { Type } from '@nestjs/common';
import { BadValue, variable } from '#config';

export const SERVICES = ['gateway', 'catalog', 'routing', 'event-store', 'runtime'] as const;
export type Service = (typeof SERVICES)[number];

/** Messages read `<owner>.<entity>.<verb>`. */
export type MessageName = `${string}.${string}.${string}`;

/**
 * The contract of two services: the message's name, the payload's class with its validators, and the type of the reply. Each fact and queued
 * command has its own topic; other commands and queries go to the request topic of the service that handles them.
 */
export interface Contract<Payload, Reply = void> {
  readonly kind: 'command' | 'query' | 'fact';
  readonly name: MessageName;
  readonly payload: Type<Payload>;
  /** Only a type: replies come from our services and are not validated. */
  readonly reply?: Reply;
}

/** The request or its reply carries secrets: both are encrypted in Kafka. */
interface MayBeSecret {
  readonly secret?: boolean;
}

/** A request for a change, handled by the service that owns the message. */
export interface Command<Payload, Reply> extends Contract<Payload, Reply>, MayBeSecret {
  readonly kind: 'command';
}
/**
 * A command without a reply. It waits in its own topic until the owner has carried it out. The outbox may publish it together with a change of
 * rows.
 */
export interface QueuedCommand<Payload> extends Contract<Payload> {
  readonly kind: 'command';
  /** The topic of this command alone; it has the same name. */
  readonly topic: string;
}
/** A request for data, handled like a command; it changes nothing. */
export interface Query<Payload, Reply> extends Contract<Payload, Reply>, MayBeSecret {
  readonly kind: 'query';
}
/** A report of what happened, for any number of services. */
export interface Fact<Payload> extends Contract<Payload> {
  readonly kind: 'fact';
  /** The topic of this fact alone; it has the same name. */
  readonly topic: string;
  /** Kafka keeps the newest record of each key only. */
  readonly compacted?: boolean;
}

export const command =
  <Reply>() =>
  <Payload>(name: MessageName, payload: Type<Payload>, options: MayBeSecret = {}): Command<Payload, Reply> => ({
    kind: 'command',
    name,
    payload,
    ...options,
  });

export const queuedCommand = <Payload>(name: MessageName, payload: Type<Payload>): QueuedCommand<Payload> => ({
  kind: 'command',
  name,
  topic: kafkaName(name),
  payload,
});

export const query =
  <Reply>() =>
  <Payload>(name: MessageName, payload: Type<Payload>, options: MayBeSecret = {}): Query<Payload, Reply> => ({
    kind: 'query',
    name,
    payload,
    ...options,
  });

export const fact = <Payload>(name: MessageName, payload: Type<Payload>, options: { compacted?: boolean } = {}): Fact<Payload> => ({
  kind: 'fact',
  name,
  topic: kafkaName(name),
  payload,
  ...options,
});

/** Lets several installations share a cluster. */
export const topicPrefix = variable('SLUICE_TOPIC_PREFIX', {
  fallback: '',
  description:
    'Prefix of the names of all topics and consumer groups, such as `staging.`, so that several installations can share a cluster.',
  parse: (value) => {
    if (!/^[\w.-]{0,64}$/.test(value)) throw new BadValue('must consist of at most 64 letters, digits, dots, underscores and hyphens');
    return value;
  },
});

/** The name of a topic or consumer group in Kafka. The whole process has one prefix, because the names of topics are constants. */
export function kafkaName(name: string): string {
  return `${process.env[topicPrefix.name] ?? ''}${name}`;
}
