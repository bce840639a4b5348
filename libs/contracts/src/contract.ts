import type { Type } from '@nestjs/common';
import { kafkaName } from './kafka-name.js';
import type { Service } from './services.js';

/** Messages read `<owner>.<entity>.<verb>`. */
export type MessageName = `${string}.${string}.${string}`;

/**
 * What two services agree on: the message's name, the payload's class with its validators, and the reply's type. Facts and queued commands have
 * a topic of their name; other commands and queries go to the one topic of their owner's requests.
 */
export interface Contract<Payload, Reply = void> {
  readonly kind: 'command' | 'query' | 'fact';
  readonly name: MessageName;
  readonly payload: Type<Payload>;
  /** Only a type: replies are trusted, they come from our own services. */
  readonly reply?: Reply;
}

/** Please do: answered by the one service that owns the message. */
export interface Command<Payload, Reply> extends Contract<Payload, Reply> {
  readonly kind: 'command';
}
/**
 * A command without a reply, which waits in a topic of its own until the owner has carried it out. It may be published together with a change of
 * rows, by the outbox.
 */
export interface QueuedCommand<Payload> extends Contract<Payload> {
  readonly kind: 'command';
  /** Its own, named like it. */
  readonly topic: string;
}
/** Please tell: like a command, and changes nothing. */
export interface Query<Payload, Reply> extends Contract<Payload, Reply> {
  readonly kind: 'query';
}
/** It happened: for whoever wants to know. */
export interface Fact<Payload> extends Contract<Payload> {
  readonly kind: 'fact';
  /** Its own, named like it. */
  readonly topic: string;
  /** Kafka keeps the newest record of each key only. */
  readonly compacted?: boolean;
  /** The services that are handed the fact directly when it is announced; their handlers take it in any order, and twice. */
  readonly announcedTo?: readonly Service[];
}

export const command =
  <Reply>() =>
  <Payload>(name: MessageName, payload: Type<Payload>): Command<Payload, Reply> => ({ kind: 'command', name, payload });

export const queuedCommand = <Payload>(name: MessageName, payload: Type<Payload>): QueuedCommand<Payload> => ({
  kind: 'command',
  name,
  topic: kafkaName(name),
  payload,
});

export const query =
  <Reply>() =>
  <Payload>(name: MessageName, payload: Type<Payload>): Query<Payload, Reply> => ({ kind: 'query', name, payload });

export const fact = <Payload>(
  name: MessageName,
  payload: Type<Payload>,
  options: { compacted?: boolean; announcedTo?: readonly Service[] } = {},
): Fact<Payload> => ({
  kind: 'fact',
  name,
  topic: kafkaName(name),
  payload,
  ...options,
});
