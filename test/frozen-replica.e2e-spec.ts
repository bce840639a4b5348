import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { eventually } from './support/eventually.js';
import { outsideProducer } from './support/producer.js';
import { Receiver } from './support/receiver.js';
import { startSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

const CODE = "export default { name: 'Silent', run() {} };";
const SOURCES = 20;
const EVENTS = 100;
/** Longer than a session of a consumer group: the other replica takes over. */
const FROZEN_MS = 14_000;

let system: System;
let receiver: Receiver;
let producer: Awaited<ReturnType<typeof outsideProducer>>;

beforeAll(async () => {
  [system, receiver] = await Promise.all([startSystem(), Receiver.start()]);
  producer = await outsideProducer(system.brokers);
  await system.apps.scale({ routing: 2 });
});
afterAll(async () => {
  await Promise.all([producer?.close(), system?.stop(), receiver?.close()]);
});

needing('pause', 'scale', 'receiver').describe('a replica of routing that stands still', () => {
  it('repeats no deliveries that the other replica has made meanwhile, except those in progress', async () => {
    const api = await system.account();
    const webhook = await api.webhook(`${receiver.url}frozen`);
    const sources = await Promise.all(Array.from({ length: SOURCES }, (_, n) => api.source(CODE, { name: `frozen ${n}` })));
    for (const { id } of sources) await api.subscribe(id, webhook);
    receiver.respondWith = () => new Promise((resolve) => setTimeout(() => resolve(200), 200));
    for (let n = 0; n < EVENTS; n++) await producer.emitAll(sources.map(({ id }) => ({ emitterId: id, event: { id, n } })));
    await eventually(() => expect(receiver.received.length).toBeGreaterThan(200), { withinMs: 60_000 });
    await system.apps.pause('routing');
    await new Promise((resolve) => setTimeout(resolve, FROZEN_MS));
    await system.apps.resume('routing');
    const names = () => receiver.received.map(({ body }) => `${body.id} ${body.n}`);
    await eventually(() => expect(new Set(names()).size).toBe(SOURCES * EVENTS), { withinMs: 120_000 });
    expect(names().length - SOURCES * EVENTS).toBeLessThan(3 * SOURCES);
  });
});
