import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { APPS } from '../scripts/processes/apps.mjs';
import type { Api } from './support/api.js';
import { eventually } from './support/eventually.js';
import { outsideProducer } from './support/producer.js';
import { Receiver } from './support/receiver.js';
import { startSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

const SOURCES = 20;
const EVENTS = 1000;
const CODE = "export default { name: 'silent', props: { http: '$.interface.http' } }";

let system: System;
let receiver: Receiver;
let api: Api;
let producer: Awaited<ReturnType<typeof outsideProducer>>;

beforeAll(async () => {
  [system, receiver] = await Promise.all([startSystem(), Receiver.start()]);
  api = await system.account();
  producer = await outsideProducer(system.brokers);
});
afterAll(async () => {
  await Promise.all([system?.stop(), receiver?.close(), producer?.close()]);
});

needing('control', 'receiver').describe('1000 events while an app is killed', () => {
  it.each(APPS)('all arrive, in order, and are stored once: %s', async (app) => {
    const component = await api.component(CODE);
    const sources: string[] = [];
    for (let n = 0; n < SOURCES; n++) sources.push((await api.post('/sources', { component_id: component })).body.data.id as string);
    const webhook = await api.webhook(`${receiver.url}${app}`);
    for (const source of sources) await api.subscribe(source, webhook);

    for (let n = 0; n < EVENTS; n += SOURCES) {
      await Promise.all(sources.map((source, index) => producer.emit(source, [{ n: n + index }])));
      if (n === EVENTS / 2) void system.apps.kill(app);
      // spread over a second or two, so that the app dies in the middle
      await new Promise((resolve) => setTimeout(resolve, 20));
    }

    const mine = () => receiver.received.filter(({ path }) => path === `/${app}`);
    await eventually(() => expect(new Set(mine().map(({ body }) => body.n as number)).size).toBe(EVENTS), { withinMs: 60_000 });
    for (const source of sources) {
      const firsts = [
        ...new Map(
          mine()
            .filter(({ headers }) => headers['ce-source'] === source)
            .map(({ headers, body }) => [headers['webhook-id'], body.n as number]),
        ).values(),
      ];
      expect(firsts).toEqual([...firsts].sort((a, b) => a - b));
      const stored = await eventually(async () => {
        const { body } = await api.get(`/sources/${source}/event_summaries?limit=100`);
        expect(body.page_info?.total_count).toBe(EVENTS / SOURCES);
        return (body.data as { event: { n: number } }[]).map(({ event }) => event.n);
      });
      expect(stored).toEqual([...firsts].reverse());
    }
  });
});

needing('control', 'receiver').it('changes that routing has confirmed are not undone when it is killed directly afterwards', async () => {
  const kept = await Promise.all(Array.from({ length: 8 }, () => api.webhook(receiver.url)));
  const deleted = await Promise.all(
    kept.map(async (webhook) => {
      const [first, created] = await Promise.all([api.patch(`/webhooks/${webhook}`, { name: 'first' }), api.webhook(receiver.url)]);
      const [second, deletion] = await Promise.all([
        api.patch(`/webhooks/${webhook}`, { name: 'second' }),
        api.delete(`/webhooks/${created}`),
      ]);
      expect([first, second, deletion].map(({ status }) => status)).toEqual([200, 200, 204]);
      return created;
    }),
  );
  await system.apps.kill('routing');
  await system.apps.whenReady('routing');
  // behind the commands that are handled again
  await api.patch(`/webhooks/${kept[0]}`, { description: 'last' });
  for (const webhook of kept) expect((await api.get(`/webhooks/${webhook}`)).body.data.name).toBe('second');
  for (const webhook of deleted) expect((await api.get(`/webhooks/${webhook}`)).status).toBe(404);
});
