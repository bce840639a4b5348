import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { Api } from './support/api.js';
import { eventually } from './support/eventually.js';
import { outsideKafka } from './support/outside-kafka.js';
import { outsideProducer } from './support/producer.js';
import { Receiver } from './support/receiver.js';
import { startSystem, type System } from './support/system.js';
import { topic } from './support/target.js';

let system: System;
let receiver: Receiver;
let api: Api;
let events: Awaited<ReturnType<typeof outsideProducer>>;
let registry: ReturnType<ReturnType<typeof outsideKafka>['producer']>;

const newId = (): string => `p_${randomUUID().replaceAll('-', '')}`;

/** Resolves when Kafka has acknowledged the record. */
async function register(id: string): Promise<void> {
  const value = JSON.stringify({ owner_id: api.account.id, name: 'Story', active: true });
  await registry.send({ topic: topic('workflows'), messages: [{ key: id, value }] });
}
const remove = (id: string) => registry.send({ topic: topic('workflows'), messages: [{ key: id, value: null }] });

beforeAll(async () => {
  [system, receiver] = await Promise.all([startSystem(), Receiver.start()]);
  api = await system.account();
  events = await outsideProducer(system.brokers);
  registry = outsideKafka(system.brokers).producer();
  await registry.connect();
  const webhook = (await api.post(`/webhooks?url=${encodeURIComponent(receiver.url)}`)).body.data;
  await api.post(`/subscriptions?emitter_id=p_*&listener_id=${webhook.id}`);
});
afterAll(async () => {
  await Promise.all([events?.close(), registry?.disconnect()]);
  await Promise.all([system?.stop(), receiver?.close()]);
});

const delivered = () => receiver.received.map(({ body }) => body as string).sort();

it('an event that a workflow emits as soon as its registration is acknowledged is delivered', async () => {
  const ids = Array.from({ length: 20 }, newId);
  for (const id of ids) {
    await register(id);
    await events.emit(id, [id]);
  }
  await eventually(() => expect(delivered()).toEqual([...ids].sort()));
});

it('an event from before the registration has no deliveries', async () => {
  receiver.received.length = 0;
  const id = newId();
  await events.emit(id, ['early']);
  await eventually(async () => expect((await api.get(`/workflows/${id}/event_summaries`)).status).toBe(404));
  await register(id);
  await events.emit(id, ['late']);
  await eventually(() => expect(delivered()).toContain('late'));
  await eventually(async () => expect((await api.get(`/workflows/${id}/event_summaries`)).body.data).toHaveLength(2));
  const [, early] = (await api.get(`/workflows/${id}/event_summaries`)).body.data;
  const { data } = (await api.get(`/workflows/${id}/events/${early.id}/deliveries`)).body;
  expect(delivered().includes('early') || data.every(({ status }: { status: string }) => status !== 'succeeded')).toBe(true);
});

it('an event is delivered although earlier ones came before the registration', async () => {
  receiver.received.length = 0;
  const ids = Array.from({ length: 10 }, newId);
  for (const id of ids) {
    await events.emit(id, ['early']);
    await register(id);
    await events.emit(id, [id]);
  }
  await eventually(() => expect(delivered().filter((each) => each !== 'early')).toEqual([...ids].sort()));
});

it('the API knows a workflow as soon as its registration is acknowledged', async () => {
  const source = (await api.post('/sources', { key: 'manual' })).body.data;
  const requests: ((id: string) => Promise<{ status: number }>)[] = [
    (id) => api.get(`/workflows/${id}/event_summaries`),
    (id) => api.post(`/workflows/${id}/events`, { published: true }),
    (id) => api.post(`/subscriptions?emitter_id=${source.id}&listener_id=${id}`),
    (id) => api.post(`/subscriptions?emitter_id=${id}&listener_id=${source.id}`),
    (id) => api.post(`/auto_subscriptions?listener_id=${id}&event_name=orders`),
  ];
  for (const request of requests) {
    const id = newId();
    expect((await request(id)).status).toBe(404);
    await register(id);
    expect([200, 202]).toContain((await request(id)).status);
    await remove(id);
    await eventually(async () => expect((await request(id)).status).toBe(404));
    await register(id);
    expect([200, 202]).toContain((await request(id)).status);
  }
});

it('a workflow that returns at once keeps what it emits from then on, and nothing else', async () => {
  receiver.received.length = 0;
  const id = newId();
  await register(id);
  await events.emit(id, ['before']);
  await eventually(() => expect(delivered()).toEqual(['before']));
  await remove(id);
  await register(id);
  await events.emit(id, ['after']);
  await eventually(() => expect(delivered()).toEqual(['after', 'before']));
  await eventually(async () => {
    const page = (await api.get(`/workflows/${id}/event_summaries?expand=event`)).body.data;
    expect(page.map(({ event }: { event: unknown }) => event)).toEqual(['after']);
  });
});
