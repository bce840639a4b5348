import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import {
  type Command,
  type Fact,
  type Query,
  type QueuedCommand,
  repliesTopic,
  requestsTopic,
  type Service,
  type SluiceError,
  TimedOut,
  Unavailable,
} from '#contracts';
import { counter, currentRequestId, type Log } from '#observability';
import type { SecretBox } from '#secrets';
import { deleteGroups, WatchedConsumer } from './consumer-life.js';
import type { KafkaClient } from './kafka.js';
import type { OutgoingRecord, Publisher } from './publisher.js';
import { errorFromWire, HEADER, replyContext, requestContext } from './wire.js';

interface Pending {
  resolve(reply: unknown): void;
  reject(error: SluiceError): void;
  timer: NodeJS.Timeout;
}

const TIMEOUT_MS = 10_000;
/** How long to wait for the late reply to a request whose caller accepts late replies. */
const LATE_MS = 60_000;
/** How long an announcement waits for the services that act on a fact. */
const ANNOUNCE_MS = 2000;
/** A broker that does not accept a request for this long is down. */
const SEND_TIMEOUT_MS = 5000;
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
  private isStopped = false;

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

  /** Resolves once replies can be received: a new group starts at the end of the topic that its first fetch finds. */
  async connect(): Promise<void> {
    // one group per process: each process reads all replies to its service and takes its own
    const group = `${this.repliesTo}.${randomUUID()}`;
    this.consumer = new WatchedConsumer(this.kafka, group, this.log, { ownGroup: true, config: { maxWaitTimeInMs: 1000 } });
    const { consumer } = this.consumer;
    const fetched = new Promise<void>((resolve) => void consumer.on(consumer.events.FETCH, () => resolve()));
    await this.consumer.start([this.repliesTo], {
      fromBeginning: false,
      autoCommit: false,
      eachBatch: async ({ batch }) => {
        for (const message of batch.messages) {
          const header = (name: string) => message.headers?.[name]?.toString();
          this.receive(header(HEADER.correlationId) ?? '', message.value, header(HEADER.error), header(HEADER.sealed) !== undefined);
        }
      },
    });
    await fetched;
    // groups of processes that were killed
    void deleteGroups(this.kafka, this.log, (other) => other.startsWith(`${this.repliesTo}.`) && other !== group);
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
   * Sends a request to the service that owns the contract. key: requests with the same key share a partition; usually the owner.
   * Throws the SluiceError that the service threw; TimedOut if there was no reply in time; Unavailable if Kafka
   * did not accept the request.
   */
  request<Payload extends object, Reply>(
    contract: Command<Payload, Reply> | Query<Payload, Reply>,
    payload: Payload,
    { key, timeoutMs = TIMEOUT_MS }: { key: string; timeoutMs?: number },
  ): Promise<Reply> {
    return this.send(ownerOf(contract), contract.name, payload, { key, timeoutMs, secret: contract.secret });
  }

  /**
   * Hands a fact directly to the services that act on it, and resolves when all of them have applied it, so the caller's next request sees it. The
   * fact must also go through the outbox: a service that is down receives it from there. The announcement waits at most two seconds.
   */
  async announce<Payload extends object>(contract: Fact<Payload>, payload: Payload, key: string): Promise<void> {
    await Promise.all(
      (contract.announcedTo ?? []).map(async (service) => {
        try {
          await this.send(service, contract.topic, payload, { key, timeoutMs: ANNOUNCE_MS });
        } catch (error) {
          lateAnnouncements.inc({ service });
          this.log.warn({ fact: contract.name, key, service, err: error }, 'fact.announced-late');
        }
      }),
    );
  }

  private send<Reply>(
    service: Service,
    message: string,
    payload: object,
    { key, timeoutMs, secret = false }: { key: string; timeoutMs: number; secret?: boolean },
  ): Promise<Reply> {
    if (this.isStopped) return Promise.reject(new Unavailable('the service is stopping'));
    const correlationId = randomUUID();
    const text = JSON.stringify(payload);
    const value = secret ? this.box.seal(text, requestContext(correlationId)) : text;
    return new Promise<Reply>((resolve, reject) => {
      const fail = (error: SluiceError) => {
        if (!this.pending.delete(correlationId)) return;
        clearTimeout(pending.timer);
        reject(error);
      };
      let onLate = currentLateHandler();
      const late = () => {
        const error = new TimedOut(`no reply to ${message} within ${timeoutMs} ms`);
        if (!onLate) return fail(error);
        onLate(error);
        onLate = undefined;
        pending.timer = setTimeout(late, LATE_MS);
      };
      const pending: Pending = { resolve: resolve, reject, timer: setTimeout(late, timeoutMs) };
      const notSent = setTimeout(() => fail(notAccepted()), Math.min(SEND_TIMEOUT_MS, timeoutMs));
      this.pending.set(correlationId, pending);
      const headers: Record<string, string> = {
        [HEADER.message]: message,
        [HEADER.correlationId]: correlationId,
        [HEADER.replyTo]: this.repliesTo,
        [HEADER.deadline]: String(Date.now() + timeoutMs),
        ...(secret ? { [HEADER.sealed]: '1' } : {}),
        ...requestIdHeader(),
      };
      this.publisher.send([{ topic: requestsTopic(service), key, value, headers }]).then(
        () => clearTimeout(notSent),
        (error: Error) => {
          clearTimeout(notSent);
          this.log.warn({ message, err: error }, 'request.not-sent');
          fail(notAccepted());
        },
      );
    });
  }

  /**
   * Publishes a fact or a queued command; resolves when Kafka has acknowledged it. One about a change of rows goes through the outbox instead.
   */
  publish<Payload extends object>(contract: Fact<Payload> | QueuedCommand<Payload>, payload: Payload, key: string): Promise<void> {
    return this.publisher.send([recordOf(contract, payload, key)]);
  }

  private receive(correlationId: string, value: Buffer | null, error: string | undefined, isSealed: boolean): void {
    const pending = this.pending.get(correlationId);
    // the reply belongs to another process, or came too late
    if (!pending) return;
    this.pending.delete(correlationId);
    clearTimeout(pending.timer);
    try {
      if (error !== undefined) throw errorFromWire(error);
      const text = value === null ? '' : decoder.decode(value);
      const reply = isSealed ? this.box.open(text, replyContext(correlationId)) : text;
      pending.resolve(reply === '' ? undefined : JSON.parse(reply));
    } catch (reason) {
      pending.reject(reason as SluiceError);
    }
  }
}

const notAccepted = (): Unavailable => new Unavailable('Kafka does not accept requests', 'the message log does not accept requests');

/** The service that handles a message: the first word of its name. */
const ownerOf = ({ name }: { name: string }): Service => name.slice(0, name.indexOf('.')) as Service;

/** The record of a fact or of a queued command, for `publish` and for the outbox. */
export const recordOf = <Payload extends object>(
  contract: Fact<Payload> | QueuedCommand<Payload>,
  payload: Payload,
  key: string,
): OutgoingRecord => ({
  topic: contract.topic,
  key,
  value: JSON.stringify(payload),
  headers: requestIdHeader(),
});

const requestIdHeader = (): Record<string, string> => {
  const requestId = currentRequestId();
  return requestId === undefined ? {} : { [HEADER.requestId]: requestId };
};

type OnLate = (error: TimedOut) => void;

const storage = new AsyncLocalStorage<OnLate>();

/**
 * Runs `work`. If a reply to one of its requests is late, the request does not fail: `onLate` is called, and the request waits for the reply.
 */
export const withLateReplies = <T>(onLate: OnLate, work: () => T): T => storage.run(onLate, work);

export const currentLateHandler = (): OnLate | undefined => storage.getStore();
