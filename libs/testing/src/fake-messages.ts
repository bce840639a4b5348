import type { Type } from '@nestjs/common';
import { type Command, type Fact, type Query, type QueuedCommand, type Service, SluiceError, TimedOut, Unavailable } from '#contracts';
import {
  currentLateHandler,
  errorFromWire,
  errorToWire,
  keyOf,
  type Messages,
  PayloadPipe,
  type ReplyListener,
  type RequestOptions,
} from '#messaging';

interface Sent {
  /** The name of the contract. */
  name: string;
  payload: object;
  key: string;
  timeoutMs?: number;
}

const pipe = new PayloadPipe();
const asJson = (value: object): unknown => JSON.parse(JSON.stringify(value));

/** A fake of `Messages` and `Publisher`: replies from a table and records the sent messages. */
export class FakeMessages implements Pick<Messages, 'request' | 'announce' | 'publish' | 'onReply'> {
  readonly requests: Sent[] = [];
  readonly announced: (Sent & { to: readonly Service[] })[] = [];
  readonly published: Sent[] = [];
  /** The contracts whose replies come late: a caller that accepts late replies is informed first. */
  private readonly late = new Set<string>();
  private readonly replies = new Map<string, (payload: never) => unknown>();
  private replied: ReplyListener | undefined;

  onReply(listener: ReplyListener): void {
    this.replied = listener;
  }

  /** Sets the reply to requests of the contract. The reply may throw the error of a service. */
  replyTo<Payload, Reply>(contract: Command<Payload, Reply> | Query<Payload, Reply>, reply: (payload: Payload) => Reply): this {
    this.replies.set(contract.name, reply);
    return this;
  }

  /** As `replyTo`, but the reply comes after the request has timed out. */
  replyLate<Payload, Reply>(contract: Command<Payload, Reply> | Query<Payload, Reply>, reply: (payload: Payload) => Promise<Reply>): this {
    this.late.add(contract.name);
    return this.replyTo(contract, reply as never);
  }

  /**
   * Request, reply and error pass as JSON, as they do in Kafka: an error arrives as a SluiceError, not as one of its classes.
   * @throws SluiceError if the service would refuse the request; Unavailable if `replyTo` has set no reply
   */
  async request<Payload extends object, Reply>(
    { name, payload: metatype }: Command<Payload, Reply> | Query<Payload, Reply>,
    payload: Payload,
    options: RequestOptions,
  ): Promise<Reply> {
    this.requests.push({ name, payload, key: keyOf(options), timeoutMs: options.timeoutMs });
    if (this.late.has(name)) currentLateHandler()?.(new TimedOut('the test is late'));
    const reply = this.replies.get(name);
    if (!reply) throw new Unavailable(`the test has no reply to ${name}`);
    const text = await this.replyText(reply, payload, metatype);
    if (options.account !== null) this.replied?.(options.account, payload, text === undefined ? 0 : Buffer.byteLength(text));
    return (text === undefined ? undefined : JSON.parse(text)) as Reply;
  }

  private async replyText(reply: (payload: never) => unknown, payload: object, metatype: Type): Promise<string | undefined> {
    try {
      return JSON.stringify(await reply((await pipe.transform(asJson(payload), { type: 'body', metatype })) as never));
    } catch (error) {
      throw error instanceof SluiceError ? errorFromWire(errorToWire(error)) : error;
    }
  }

  async announce<Payload extends object>({ name }: Fact<Payload>, payload: Payload, key: string, to: readonly Service[]): Promise<boolean> {
    this.announced.push({ name, payload, key, to });
    return true;
  }

  async publish<Payload extends object>({ name }: Fact<Payload> | QueuedCommand<Payload>, payload: Payload, key: string): Promise<void> {
    this.published.push({ name, payload, key });
  }
}
