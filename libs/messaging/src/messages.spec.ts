import { expect, it } from '@jest/globals';
import type { Batch, ConsumerRunConfig } from 'kafkajs';
import { createWebhook, emitterChanged, executeRun, getWebhook, repliesTopic, requestsTopic, Unavailable } from '#contracts';
import { createLog } from '#observability';
import { SecretBox } from '#secrets';
import type { KafkaClient } from './kafka.js';
import { Messages, type ReplyListener } from './messages.js';
import type { Publisher, SendOptions } from './publisher.js';
import { HEADER } from './wire.js';

const TOPIC = repliesTopic('gateway');

/** A consumer of kafkajs that records which offsets it seeks. */
class FakeConsumer {
  readonly events = { GROUP_JOIN: 'join', FETCH_START: '', FETCH: '', HEARTBEAT: '', STOP: '', CRASH: '' };
  readonly sought: string[] = [];
  private readonly joined: ((event: object) => void)[] = [];
  private config: ConsumerRunConfig | undefined;

  on(event: string, listener: (event: object) => void): void {
    if (event === 'join') this.joined.push(listener);
  }
  async connect(): Promise<void> {}
  async subscribe(): Promise<void> {}
  async run(config: ConsumerRunConfig): Promise<void> {
    this.config = config;
    this.join();
  }
  join(): void {
    for (const listener of this.joined) listener({ payload: { memberAssignment: { [TOPIC]: [0, 1] } } });
  }
  seek({ partition, offset }: { partition: number; offset: string }): void {
    this.sought.push(`${partition}: ${offset}`);
  }
  receive(partition: number, lastOffset: string, messages: object[] = []): Promise<void> {
    return this.config!.eachBatch!({ batch: { partition, messages, lastOffset: () => lastOffset } as unknown as Batch } as never);
  }
}

it('reads replies from the end of the topic at its start, and from where it was each time it joins its group again', async () => {
  const consumer = new FakeConsumer();
  const kafka = {
    watchedConsumer: () => consumer,
    withAdmin: async () => [
      { partition: 0, high: '5' },
      { partition: 1, high: '0' },
    ],
  } as unknown as KafkaClient;
  await new Messages('gateway', kafka, {} as Publisher, createLog('test', 'silent'), new SecretBox([])).connect();
  expect(consumer.sought.splice(0)).toEqual(['0: 5', '1: 0']);
  await consumer.receive(0, '6');
  consumer.join();
  expect(consumer.sought).toEqual(['0: 7', '1: 0']);
});

it('a request may wait for others before it is sent while several wait for their replies', async () => {
  const sent: (boolean | undefined)[] = [];
  const publisher = { send: async (_: object[], { mayWait }: SendOptions) => void sent.push(mayWait) } as unknown as Publisher;
  const messages = new Messages('gateway', {} as KafkaClient, publisher, createLog('test', 'silent'), new SecretBox([]));
  const replies = Array.from({ length: 4 }, () => messages.request(getWebhook, {} as never, { account: null, key: 'user' }));
  const ended = Promise.allSettled(replies);
  await messages.close();
  await ended;
  expect(sent).toEqual([false, false, true, true]);
});

it('a request that Kafka refuses because of its size is too large, and not unavailable', async () => {
  const refusal = Object.assign(new Error('too large'), { name: 'KafkaJSProtocolError', type: 'MESSAGE_TOO_LARGE' });
  const publisher = { send: () => Promise.reject(refusal) } as unknown as Publisher;
  const messages = new Messages('gateway', {} as KafkaClient, publisher, createLog('test', 'silent'), new SecretBox([]));
  const request = messages.request(getWebhook, {} as never, { account: null, key: 'user' });
  await expect(request).rejects.toMatchObject({ code: 'too_large', message: 'the request is too large' });
});

it('neither a request nor a queued command is sent after its caller has got an error', async () => {
  const sent: ({ withinMs?: number } | undefined)[] = [];
  const publisher = {
    send: async (_: object[], options?: { withinMs?: number }) => {
      sent.push(options);
      throw new Unavailable('Kafka does not take records', 'the message log does not accept records');
    },
  } as unknown as Publisher;
  const messages = new Messages('gateway', {} as KafkaClient, publisher, createLog('test', 'silent'), new SecretBox([]));
  await expect(messages.request(createWebhook, {} as never, { account: null, key: 'k', timeoutMs: 60_000 })).rejects.toMatchObject({
    code: 'unavailable',
  });
  await expect(messages.request(createWebhook, {} as never, { account: null, key: 'k', timeoutMs: 1000 })).rejects.toMatchObject({
    code: 'unavailable',
  });
  await expect(messages.publish(executeRun, {} as never, 'k')).rejects.toMatchObject({ code: 'unavailable' });
  expect(sent).toEqual([
    { withinMs: 5000, account: 'k', mayWait: false },
    { withinMs: 1000, account: 'k', mayWait: false },
    { withinMs: 5000, account: 'k' },
  ]);
});

it.each<[string, () => Promise<void>, string]>([
  ['has accepted', async () => {}, 'timeout'],
  ['has not accepted in time', () => new Promise(() => {}), 'unavailable'],
])('a request that Kafka %s, and that gets no reply, has an error that says so', async (_, send, code) => {
  const publisher = { send } as unknown as Publisher;
  const messages = new Messages('gateway', {} as KafkaClient, publisher, createLog('test', 'silent'), new SecretBox([]));
  await expect(messages.request(createWebhook, {} as never, { account: null, key: 'k', timeoutMs: 10 })).rejects.toMatchObject({ code });
});

it('returns whether all services have applied an announced fact in time', async () => {
  const consumer = new FakeConsumer();
  const kafka = { watchedConsumer: () => consumer, withAdmin: async () => [] } as unknown as KafkaClient;
  let late = '';
  const publisher = {
    send: async ([{ topic, headers }]: [{ topic: string; headers: Record<string, string> }]) => {
      if (topic === late) throw new Error('refused');
      const reply = { headers: { [HEADER.correlationId]: headers[HEADER.correlationId] }, value: Buffer.alloc(0) };
      setImmediate(() => void consumer.receive(0, '0', [reply]));
    },
  } as unknown as Publisher;
  const messages = new Messages('gateway', kafka, publisher, createLog('test', 'silent'), new SecretBox([]));
  await messages.connect();
  const announce = () => messages.announce(emitterChanged, {} as never, 'k', ['routing', 'runtime']);
  expect(await announce()).toBe(true);
  late = requestsTopic('runtime');
  expect(await announce()).toBe(false);
});

it('reports the size of each reply to a request of an account', async () => {
  const consumer = new FakeConsumer();
  const kafka = { watchedConsumer: () => consumer, withAdmin: async () => [] } as unknown as KafkaClient;
  const correlationIds: string[] = [];
  const publisher = {
    send: async ([record]: { headers: Record<string, string> }[]) => void correlationIds.push(record!.headers[HEADER.correlationId]!),
  } as unknown as Publisher;
  const messages = new Messages('gateway', kafka, publisher, createLog('test', 'silent'), new SecretBox([]));
  await messages.connect();
  const replies: Parameters<ReplyListener>[] = [];
  messages.onReply((...reply) => replies.push(reply));
  const request = { owner_id: 'u_1', id: 'wh_1' } as const;
  const reply = messages.request(getWebhook, request, { account: 'u_1' });
  const value = Buffer.from(JSON.stringify({ id: 'wh_1', name: 'ä' }));
  const half = value.length / 2;
  for (const [index, part] of [value.subarray(0, half), value.subarray(half)].entries()) {
    const headers = { [HEADER.correlationId]: correlationIds[0], [HEADER.part]: `r/${index}/2` };
    await consumer.receive(0, String(index), [{ headers, value: part }]);
  }
  expect(await reply).toEqual({ id: 'wh_1', name: 'ä' });
  expect(replies).toEqual([['u_1', request, value.length]]);
});

it('deletes the groups of other processes of its service, of which Kafka refuses those that have members', async () => {
  const deleted: string[] = [];
  const groups = [`${TOPIC}.killed`, `${repliesTopic('catalog')}.killed`, 'gateway.facts'].map((groupId) => ({ groupId }));
  const admin = {
    fetchTopicOffsets: async () => [],
    listGroups: async () => ({ groups }),
    deleteGroups: async (given: string[]) => void deleted.push(...given),
  };
  const kafka = { watchedConsumer: () => new FakeConsumer(), withAdmin: (work: (given: object) => unknown) => work(admin) };
  const log = createLog('test', 'silent');
  await new Messages('gateway', kafka as unknown as KafkaClient, {} as Publisher, log, new SecretBox([])).connect();
  await new Promise((resolve) => setImmediate(resolve));
  expect(deleted).toEqual([`${TOPIC}.killed`]);
});
