import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { Admin } from 'kafkajs';
import {
  type Command,
  type Fact,
  type Query,
  type QueuedCommand,
  repliesTopic,
  requestsTopic,
  type Service,
  SluiceError,
  TimedOut,
  TooManyRequests,
  Unavailable,
  type UserId,
} from '#contracts';
import { counter, currentRequestId, type Log } from '#observability';
import type { SecretBox } from '#secrets';
import { deleteGroups, WatchedConsumer } from './consumer-life.js';
import { isBrokerFailure, isRefused } from './kafka-errors.js';
import type { KafkaClient } from './kafka.js';
import { headersOf } from './log-record.js';
import { type OutgoingRecord, type Publisher, SEND_WITHIN_MS } from './publisher.js';
import type { RecordHeaders } from './record-headers.js';
import { ArrivedParts } from './reply-parts.js';
import { errorFromWire, HEADER, replyContext, requestContext } from './wire.js';

/** The account for which a request is sent, and its key. Requests with the same key share a partition; without one, those of an account do. */
export type RequestOptions = ({ account: UserId; key?: string } | { account: null; key: string }) & { timeoutMs?: number };

/** Gets each request of an account whose reply arrives, and the size of the reply. */
export type ReplyListener = (account: UserId, request: object, bytes: number) => void;

interface Pending {
  request: object;
  account: UserId | null;
  resolve(reply: unknown): void;
  reject(error: SluiceError): void;
  timer: NodeJS.Timeout;
  /** Of a reply that is larger than a record. */
  parts?: ArrivedParts;
}

const TIMEOUT_MS = 10_000;
/** A request may wait for others before it is sent while at least this many others wait for their replies. */
const SEVERAL = 2;
/** How long to wait for the late reply to a request whose caller accepts late replies. */
export const LATE_MS = 60_000;
/** A larger request would occupy the brokers and the service that handles it. Callers limit what their users can send. */
const MAX_REQUEST_CHARS = 16 * 1024 * 1024;

/** How long an announcement waits for the services that act on a fact. */
const ANNOUNCE_MS = 2000;
/** The pause before the brokers are asked again. */
const AGAIN_MS = 1000;
const decoder = new TextDecoder();
const lateAnnouncements = counter(
  'announcements_late_total',
  'Facts that a service did not apply before the response to the request that caused them.',
  ['service'],
);

/** Communication between services: `request` calls one and waits for its reply, `publish` sends a fact to all that handle it. */
export class Messages {
  private readonly pending = new Map<string, Pending>();
  private readonly repliesTo: string;
  private consumer: WatchedConsumer | undefined;
  /** The next offset of each partition of the topic of replies. */
  private readonly positions = new Map<number, string>();
  private isStopped = false;
  private replied: ReplyListener = () => {};

  constructor(
    private readonly service: Service,
    private readonly kafka: KafkaClient,
    private readonly publisher: Publisher,
    private readonly log: Log,
    /** For messages that carry secrets. */
    private readonly box: SecretBox,
  ) {
    this.repliesTo = repliesTopic(service);
  }

  /** Resolves once replies can be received. */
  async connect(): Promise<void> {
    // one group per process: each process reads all replies to its service and takes its own
    this.consumer = new WatchedConsumer(this.kafka, this.repliesTo, this.log, { ownGroup: true });
    const { consumer, group } = this.consumer;
    for (const { partition, high } of await this.ends()) this.positions.set(partition, high);
    // The group has no committed offsets. Without this, it would begin at the end each time it is joined, and miss the replies before that.
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      for (const partition of payload.memberAssignment[this.repliesTo] ?? []) {
        const offset = this.positions.get(partition);
        if (offset !== undefined) consumer.seek({ topic: this.repliesTo, partition, offset });
      }
    });
    await this.consumer.start([this.repliesTo], {
      fromBeginning: false,
      autoCommit: false,
      eachBatch: async ({ batch }) => {
        for (const message of batch.messages) {
          const headers = headersOf(message);
          const id = headers.get(HEADER.correlationId) ?? '';
          const pending = this.pending.get(id);
          // without one, the reply belongs to another process, or came too late
          if (pending) this.receive(id, pending, message.value ?? Buffer.alloc(0), headers);
        }
        this.positions.set(batch.partition, String(BigInt(batch.lastOffset()) + 1n));
      },
    });
    void this.deleteGroupsOfOthers(group);
  }

  /** Only those of processes that were killed have no members. */
  private async deleteGroupsOfOthers(own: string): Promise<void> {
    const find = async (admin: Admin): Promise<string[]> =>
      (await admin.listGroups()).groups
        .map(({ groupId }) => groupId)
        .filter((each) => each.startsWith(`${this.repliesTo}.`) && each !== own);
    const others = await this.kafka.withAdmin(find, { retry: { retries: 0 } }).catch((error: Error) => {
      this.log.debug({ err: error }, 'consumer-groups.not-listed');
      return [];
    });
    if (others.length > 0) await deleteGroups(this.kafka, this.log, others);
  }

  /** Sets what is called with the replies to requests of accounts. */
  onReply(listener: ReplyListener): void {
    this.replied = listener;
  }

  /** The end of each partition of the topic of replies. Waits for brokers that are down. */
  private async ends(): Promise<{ partition: number; high: string }[]> {
    for (;;) {
      try {
        return await this.kafka.withAdmin((admin) => admin.fetchTopicOffsets(this.repliesTo));
      } catch (error) {
        if (!isBrokerFailure(error)) throw error;
        this.log.warn({ topic: this.repliesTo, err: error }, 'replies.end-unknown');
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
  }

  /** The service stops: requests without a reply after `ms` fail, because the services that they wait for may be stopping, too. */
  stopWithin(ms: number): void {
    setTimeout(() => this.rejectAll(), ms).unref();
  }

  async close(): Promise<void> {
    await this.consumer?.stop();
    this.rejectAll();
  }

  private rejectAll(): void {
    this.isStopped = true;
    for (const [id, { reject, timer }] of this.pending) {
      clearTimeout(timer);
      this.pending.delete(id);
      reject(new Unavailable('the service is stopping'));
    }
  }

  /**
   * Sends a request to the service that owns the contract. Throws the SluiceError that the service threw; TimedOut if there was no reply in time;
   * Unavailable if Kafka did not acknowledge the request in time; `too_large` if it refuses the request because of its size.
   */
  request<Payload extends object, Reply>(
    contract: Command<Payload, Reply> | Query<Payload, Reply>,
    payload: Payload,
    { timeoutMs = TIMEOUT_MS, ...options }: RequestOptions,
  ): Promise<Reply> {
    return this.send(ownerOf(contract), contract.name, payload, { ...options, timeoutMs, secret: contract.secret });
  }

  /**
   * Hands a fact directly to the services that act on it, and resolves when all of them have applied it, so the caller's next request sees it; with false
   * if one of them is late. The fact must also go through the outbox: a service that is down receives it from there. The announcement waits at most two seconds. The handlers of these
   * services accept facts in any order, and twice.
   */
  async announce<Payload extends object>(contract: Fact<Payload>, payload: Payload, key: string, to: readonly Service[]): Promise<boolean> {
    const applied = await Promise.all(
      to.map(async (service) => {
        try {
          await this.send(service, contract.topic, payload, { account: null, key, timeoutMs: ANNOUNCE_MS });
          return true;
        } catch (error) {
          lateAnnouncements.inc({ service });
          this.log.warn({ fact: contract.name, key, service, err: error }, 'fact.announced-late');
          return false;
        }
      }),
    );
    return !applied.includes(false);
  }

  private send<Reply>(
    service: Service,
    message: string,
    payload: object,
    { timeoutMs, secret = false, ...options }: RequestOptions & { timeoutMs: number; secret?: boolean },
  ): Promise<Reply> {
    const { account } = options;
    const key = keyOf(options);
    if (this.isStopped) return Promise.reject(new Unavailable('the service is stopping'));
    const correlationId = randomUUID();
    const text = JSON.stringify(payload);
    if (text.length > MAX_REQUEST_CHARS)
      return Promise.reject(new Error(`${message} has ${text.length} characters of JSON: its caller must limit it`));
    const value = secret ? this.box.seal(text, requestContext(correlationId)) : text;
    return new Promise<Reply>((resolve, reject) => {
      const fail = (error: SluiceError) => {
        if (!this.pending.delete(correlationId)) return;
        clearTimeout(pending.timer);
        reject(error);
      };
      let onLate = currentLateHandler();
      let isAccepted = false;
      const late = () => {
        const error = isAccepted ? new TimedOut(`no reply to ${message} within ${Math.round(timeoutMs)} ms`) : notAccepted();
        if (!onLate) return fail(error);
        onLate(error);
        onLate = undefined;
        pending.timer = setTimeout(late, LATE_MS);
      };
      const pending: Pending = { request: payload, account, resolve, reject, timer: setTimeout(late, timeoutMs) };
      this.pending.set(correlationId, pending);
      const headers: Record<string, string> = {
        [HEADER.message]: message,
        [HEADER.correlationId]: correlationId,
        [HEADER.replyTo]: this.repliesTo,
        [HEADER.deadline]: String(Date.now() + timeoutMs),
        ...(secret ? { [HEADER.sealed]: '1' } : {}),
        ...requestIdHeader(),
      };
      const withinMs = Math.min(SEND_WITHIN_MS, timeoutMs);
      // with this one
      const mayWait = this.pending.size > SEVERAL;
      this.publisher.send([{ topic: requestsTopic(service), key, value, headers }], { withinMs, account: account ?? key, mayWait }).then(
        () => (isAccepted = true),
        (error: Error) => {
          this.log.warn({ message, err: error }, 'request.not-sent');
          if (error instanceof TooManyRequests) fail(error);
          // also on every retry
          else fail(isRefused(error) ? new SluiceError('too_large', 'the request is too large') : notAccepted());
        },
      );
    });
  }

  /**
   * Publishes a fact or a queued command; resolves when Kafka has acknowledged it. Throws Unavailable if it does not in time. One about a change of rows
   * goes through the outbox instead.
   */
  publish<Payload extends object>(contract: Fact<Payload> | QueuedCommand<Payload>, payload: Payload, key: string): Promise<void> {
    return this.publisher.send([recordOf(contract, payload, key)], { withinMs: SEND_WITHIN_MS, account: key });
  }

  private receive(correlationId: string, pending: Pending, value: Buffer, headers: RecordHeaders): void {
    const part = headers.get(HEADER.part);
    const whole = part === undefined ? value : (pending.parts ??= new ArrivedParts()).add(part, value);
    if (!whole) return;
    this.pending.delete(correlationId);
    clearTimeout(pending.timer);
    if (pending.account !== null) this.replied(pending.account, pending.request, whole.length);
    const error = headers.get(HEADER.error);
    try {
      if (error !== undefined) throw errorFromWire(error);
      const text = decoder.decode(whole);
      const reply = headers.get(HEADER.sealed) === undefined ? text : this.box.open(text, replyContext(correlationId));
      pending.resolve(reply === '' ? undefined : JSON.parse(reply));
    } catch (reason) {
      pending.reject(reason as SluiceError);
    }
  }
}

const notAccepted = (): Unavailable => new Unavailable('Kafka does not accept requests', 'the message log does not accept requests');

/** The key of a request's record: the given one, or else the account. */
export const keyOf = (options: RequestOptions): string => (options.account === null ? options.key : (options.key ?? options.account));

/** The service that handles a message: the first word of its name. */
const ownerOf = ({ name }: { name: string }): Service => name.slice(0, name.indexOf('.')) as Service;

/** The record of a fact or of a queued command, for `publish` and for the outbox. */
export const recordOf = <Payload extends object>(
  contract: Fact<Payload> | QueuedCommand<Payload>,
  payload: Payload,
  key: string,
): Omit<OutgoingRecord, 'value'> & { value: string } => ({
  topic: contract.topic,
  key,
  value: JSON.stringify(payload),
  headers: requestIdHeader(),
});

const requestIdHeader = (): Record<string, string> => {
  const requestId = currentRequestId();
  return requestId === undefined ? {} : { [HEADER.requestId]: requestId };
};

type OnLate = (error: TimedOut | Unavailable) => void;

const storage = new AsyncLocalStorage<OnLate | undefined>();

/**
 * Runs `work`. If a reply to one of its requests is late, the request does not fail: `onLate` is called, and the request waits for the reply.
 * `undefined`: it fails, also within such work.
 */
export const withLateReplies = <T>(onLate: OnLate | undefined, work: () => T): T => storage.run(onLate, work);

export const currentLateHandler = (): OnLate | undefined => storage.getStore();
