import { afterAll, beforeAll, expect } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { eventually } from './support/eventually.js';
import { outsideProducer } from './support/producer.js';
import { Receiver } from './support/receiver.js';
import { startSystem, type System } from './support/system.js';
import { needing } from './support/target.js';
import { registerWorkflow } from './support/workflows.js';

const CODE = "export default { name: 'Silent', run() {} };";
/** More than the tasks that routing keeps in memory. */
const UNKNOWN = 4000;
const newId = (prefix: string): string => `${prefix}_${randomUUID().replaceAll('-', '')}`;
const numbers = Array.from({ length: 50 }, (_, n) => n);

let system: System;
let receiver: Receiver;
let producer: Awaited<ReturnType<typeof outsideProducer>>;

beforeAll(async () => {
  [system, receiver] = await Promise.all([startSystem(), Receiver.start()]);
  producer = await outsideProducer(system.brokers);
});
afterAll(async () => {
  await Promise.all([producer?.close(), system?.stop(), receiver?.close()]);
});

const receivedBy = (path: string): number[] =>
  receiver.received.filter((each) => each.path === path).map(({ body }) => (body as { n: number }).n);

needing('pause', 'receiver').it(
  'events of unknown emitters do not stop the routing of others while the catalog does not respond, and those of a new workflow are delivered in order later',
  async () => {
    const api = await system.account();
    const { id: source } = await api.source(CODE);
    const workflow = newId('p');
    await api.subscribe(source, await api.webhook(`${receiver.url}known`));
    await api.subscribe('p_*', await api.webhook(`${receiver.url}new`));
    await producer.emit(source, [{ n: -1 }]);
    await eventually(() => expect(receivedBy('/known')).toEqual([-1]));
    await system.apps.pause('catalog');
    try {
      await registerWorkflow(system.brokers, workflow, api.account.id);
      await producer.emit(workflow, [{ n: 0 }]);
      const unknown = Array.from({ length: UNKNOWN }, (_, n) => ({ emitterId: newId(n % 2 === 0 ? 'dc' : 'p'), event: { n } }));
      await producer.emitAll(unknown);
      await producer.emit(source, [{ n: 0 }]);
      for (const n of numbers.slice(1)) await producer.emit(workflow, [{ n }]);
      await eventually(() => expect(receivedBy('/known')).toEqual([-1, 0]), { withinMs: 60_000 });
    } finally {
      await system.apps.resume('catalog');
    }
    await eventually(() => expect(receivedBy('/new')).toHaveLength(numbers.length), { withinMs: 120_000 });
    expect(receivedBy('/new')).toEqual(numbers);
  },
);
