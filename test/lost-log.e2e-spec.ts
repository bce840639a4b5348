import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Api } from './support/api.js';
import { eventually } from './support/eventually.js';
import { outsideKafka } from './support/outside-kafka.js';
import { outsideProducer } from './support/producer.js';
import { Receiver } from './support/receiver.js';
import { startSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

const CODE = "export default { name: 'silent' }";
const SOURCES = 6;
const BEFORE = 30;
const AFTER = 60;

let system: System;
let receiver: Receiver;
let api: Api;

beforeAll(async () => {
  [system, receiver] = await Promise.all([startSystem({ killsBroker: true }), Receiver.start()]);
  api = await system.account();
});
afterAll(async () => {
  await Promise.all([system?.stop(), receiver?.close()]);
});

/** The events of a source that the receiver has got and that the store shows, by their number, with the ids that both have given them. */
async function seen(source: string): Promise<{ received: Map<number, string>; stored: Map<number, string> }> {
  const { status, body } = await api.get(`/sources/${source}/event_summaries?limit=100`);
  expect({ status, error: body.error }).toEqual({ status: 200, error: undefined });
  const stored = (body.data as { id: string; event: { n: number } }[]).map(({ id, event }): [number, string] => [event.n, id]);
  const received = receiver.received
    .filter(({ headers }) => headers['ce-source'] === source)
    .map((request): [number, string] => [request.body.n as number, request.headers['ce-sluiceevent'] as string]);
  return { received: new Map(received), stored: new Map(stored.reverse()) };
}

const stored = async (source: string): Promise<object[]> => (await api.get(`/sources/${source}/event_summaries?limit=100`)).body.data;

const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, index) => from + index);

/** Publishes the events `from` to `to` of each source, when the topic is there. */
async function publish(sources: string[], from: number, to: number): Promise<void> {
  const producer = await outsideProducer(system.brokers);
  const events = numbers(from, to).map((n) => ({ n }));
  for (const source of sources) await eventually(() => producer.emit(source, events), { withinMs: 60_000 });
  await producer.close();
}

/** All of these events have arrived and are stored, the newest last, with the same ids. */
async function complete(sources: string[], from: number, to: number): Promise<void> {
  for (const source of sources) {
    await eventually(
      async () => {
        const { received, stored } = await seen(source);
        const expected = numbers(from, to);
        expect([...stored.keys()].slice(-expected.length)).toEqual(expected);
        for (const n of expected) expect({ n, id: received.get(n) }).toEqual({ n, id: stored.get(n) });
      },
      { withinMs: 60_000 },
    );
  }
}

needing('processes', 'broker', 'receiver').describe('when Kafka loses the topic events', () => {
  const ways: [string, () => Promise<void>, () => Promise<void>][] = [
    [
      'because its disk is lost',
      async () => {
        await system.broker.kill();
        await system.broker.loseData?.();
      },
      () => system.broker.start(),
    ],
    [
      'because the topic is deleted',
      async () => {
        const admin = outsideKafka(system.brokers).admin();
        await admin.connect();
        await admin.deleteTopics({ topics: ['events'] });
        await admin.disconnect();
      },
      () => Promise.resolve(),
    ],
    [
      'because the topic is deleted and created again a moment later',
      async () => {
        const admin = outsideKafka(system.brokers).admin();
        await admin.connect();
        const { partitions } = (await admin.fetchTopicMetadata({ topics: ['events'] })).topics[0]!;
        await admin.deleteTopics({ topics: ['events'] });
        // fetches fail meanwhile, and so do the look-ups of the topic, after which a consumer would join its group again
        await new Promise((resolve) => setTimeout(resolve, 400));
        const configEntries = [{ name: 'message.timestamp.type', value: 'LogAppendTime' }];
        await eventually(() => admin.createTopics({ topics: [{ topic: 'events', numPartitions: partitions.length, configEntries }] }));
        await admin.disconnect();
      },
      () => Promise.resolve(),
    ],
  ];

  it.each(ways)('the events of the new log are delivered and stored as the newest, %s', async (_, lose, restore) => {
    const component = await api.component(CODE);
    const sources: string[] = [];
    for (let n = 0; n < SOURCES; n++) sources.push((await api.post('/sources', { component_id: component })).body.data.id as string);
    const webhook = await api.webhook(receiver.url);
    for (const source of sources) await api.subscribe(source, webhook);
    await publish(sources, 0, BEFORE);
    await complete(sources, 0, BEFORE);

    // the store finds a log that is longer than the one that it has read
    await system.apps.stop('event-store');
    await lose();
    await restore();
    await publish(sources, BEFORE, BEFORE + AFTER);
    await system.apps.start('event-store');
    await complete(sources, BEFORE, BEFORE + AFTER);
    for (const source of sources) expect([...(await seen(source)).stored.keys()]).toEqual(numbers(0, BEFORE + AFTER));
    expect((await system.apps.logs('event-store')).filter((line) => line.includes('"log.replaced"'))).not.toHaveLength(0);
  });

  it('the first events of a new log that is shorter than the lost one do not wait for more', async () => {
    const source = (await api.post('/sources', { component_id: await api.component(CODE) })).body.data.id as string;
    await api.subscribe(source, await api.webhook(receiver.url));
    // none of the partitions has more
    await system.broker.kill();
    await system.broker.loseData?.();
    await system.broker.start();
    await publish([source], 0, 2);
    await complete([source], 0, 2);
    await system.broker.kill();
    await system.broker.loseData?.();
    await system.broker.start();
    await publish([source], 2, 3);
    await complete([source], 2, 3);
  });

  it('a source that was deleted or switched off while the runtime was down does not run any more, and the others do', async () => {
    const component = await api.component(
      "export default { name: 'ticking', props: { timer: { type: '$.interface.timer', default: { intervalSeconds: 1 } } }, run() { this.$emit(1) } }",
    );
    const create = async () => (await api.post('/sources', { component_id: component })).body.data.id as string;
    const [deleted, off, kept] = [await create(), await create(), await create()];
    for (const id of [deleted, off, kept]) await eventually(async () => expect((await stored(id)).length).toBeGreaterThan(0));

    await system.apps.stop('runtime');
    expect((await api.delete(`/sources/${deleted}`)).status).toBe(204);
    expect((await api.put(`/sources/${off}`, { component_id: component, active: false })).status).toBe(200);
    await system.broker.kill();
    await system.broker.loseData?.();
    await system.broker.start();
    const logged = (text: RegExp) => eventually(async () => expect((await system.apps.logs('runtime')).join('')).toMatch(text));
    // it recognises the loss, and dies before it can repair it
    await system.apps.stop('catalog');
    await system.apps.start('runtime');
    await logged(/"topic":"catalog.emitter.changed".*"msg":"log.loss-not-repaired"/);
    await system.apps.kill('runtime');
    await system.apps.start('catalog');
    await system.apps.start('runtime');
    await logged(/"topic":"catalog.emitter.changed","emitters":\d+,"msg":"log.loss-repaired"/);
    const runs = async (id: string) =>
      (await system.apps.logs('runtime')).filter((line) => line.includes(id) && line.includes('run.finished')).length;
    const before = [await runs(deleted), await runs(off)];
    const { length } = await stored(kept);
    await eventually(async () => expect((await stored(kept)).length).toBeGreaterThan(length + 2));
    expect([await runs(deleted), await runs(off)]).toEqual(before);
  });
});
