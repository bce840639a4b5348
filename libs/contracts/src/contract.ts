import type { Type } from '@nestjs/common';

/** A topic of ours reads `<owner>.<entity>.<verb>`. */
export type TopicName = `${string}.${string}.${string}`;

/** What two services agree on: the topic, the payload's class with its validators, and the reply's type. */
export interface Contract<Payload, Reply = void> {
  readonly kind: 'command' | 'query' | 'fact';
  readonly topic: TopicName;
  readonly payload: Type<Payload>;
  /** Only a type: replies are trusted, they come from our own services. */
  readonly reply?: Reply;
  /** Kafka keeps the newest record of each key only. */
  readonly compacted?: boolean;
}

/** Please do: answered by the one service that owns the topic. */
export interface Command<Payload, Reply> extends Contract<Payload, Reply> {
  readonly kind: 'command';
}
/** Please tell: like a command, and changes nothing. */
export interface Query<Payload, Reply> extends Contract<Payload, Reply> {
  readonly kind: 'query';
}
/** It happened: for whoever wants to know. */
export interface Fact<Payload> extends Contract<Payload> {
  readonly kind: 'fact';
}

export const command =
  <Reply>() =>
  <Payload>(topic: TopicName, payload: Type<Payload>): Command<Payload, Reply> => ({ kind: 'command', topic, payload });

export const query =
  <Reply>() =>
  <Payload>(topic: TopicName, payload: Type<Payload>): Query<Payload, Reply> => ({ kind: 'query', topic, payload });

export const fact = <Payload>(topic: TopicName, payload: Type<Payload>, options: { compacted?: boolean } = {}): Fact<Payload> => ({
  kind: 'fact',
  topic,
  payload,
  ...options,
});
