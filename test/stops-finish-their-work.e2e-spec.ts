import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createServer, type Server } from 'node:http';
import type { App } from '../scripts/processes/apps.mjs';
import { type Api, http } from './support/api.js';
import { EventStream } from './support/event-stream.js';
import { eventually } from './support/eventually.js';
import { outsideProducer } from './support/producer.js';
import { Receiver } from './support/receiver.js';
import { startSystem, type System } from './support/system.js';
import { listenForTarget, needing } from './support/target.js';

const RUN_MS = 12_000;
const DELIVERY_MS = 10_000;
const FETCH_MS = 3_000;
/** An attempt that takes longer than a second is parked, with the deliveries behind it, although no service is stopping. */
const SLOW_MS = 800;
/** Less than a service waits for work that does not end. On Kubernetes, the pod first leaves its Service for five seconds. */
const STOPPED_WITHIN_MS = 20_000;

let system: System;
let api: Api;
let receiver: Receiver;
/** For a component by URL. */
let files: Server | undefined;
let producer: Awaited<ReturnType<typeof outsideProducer>>;

beforeAll(async () => {
  [system, receiver] = await Promise.all([startSystem(), Receiver.start()]);
  [api, producer] = await Promise.all([system.account(), outsideProducer(system.brokers)]);
});
afterAll(async () => {
  files?.closeAllConnections();
  files?.close();
  await Promise.all([system?.stop(), receiver?.close(), producer?.close()]);
});

const requestsAt = (path: string) => receiver.received.filter((request) => request.path === path);
const arrival = (path: string) => eventually(() => expect(requestsAt(path)).toHaveLength(1));
const eventsOf = async (source: { id: string }): Promise<unknown[]> => {
  const { body } = await api.get(`/sources/${source.id}/event_summaries`);
  return body.data.map(({ event }: { event: unknown }) => event).reverse();
};

async function whileStopped(app: App, action: () => Promise<unknown>): Promise<void> {
  await system.apps.stop(app);
  try {
    await action();
  } finally {
    await system.apps.start(app);
  }
}

const { describe } = needing('control', 'receiver');

describe('a service that is stopping', () => {
  it(`finishes runs of ${RUN_MS / 1000} s and responds to the waiting client, and no other process repeats them`, async () => {
    const slow = (name: string, more: string) => `export default { name: '${name}', ${more}
      async run(event) {
        const { word, ms } = event.body ?? event;
        await fetch('${receiver.url}' + word, { method: 'POST' });
        await new Promise((resolve) => setTimeout(resolve, ms));
        this.http?.respond({ status: 200, body: { word } });
        this.$emit(word);
      } }`;
    const responding = await api.source(slow('responding', "props: { http: { type: '$.interface.http', customResponse: true } },"));
    const emitting = await api.source(slow('emitting', ''));
    const call = (body: object) =>
      http('POST', responding.configured_props.http.endpoint_url, {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const response = call({ word: 'responded', ms: RUN_MS });
    await api.post(`/sources/${emitting.id}/run`, { event: { word: 'emitted', ms: RUN_MS } });
    await Promise.all([arrival('/responded'), arrival('/emitted')]);

    await whileStopped('runtime', async () => expect(await response).toMatchObject({ status: 200, body: { word: 'responded' } }));
    // the later events show that nothing is left to be repeated
    await api.post(`/sources/${emitting.id}/run`, { event: { word: 'emitted-later', ms: 0 } });
    expect((await call({ word: 'responded-later', ms: 0 })).status).toBe(200);
    await eventually(async () => expect(await eventsOf(emitting)).toEqual(['emitted', 'emitted-later']));
    await eventually(async () => expect(await eventsOf(responding)).toEqual(['responded', 'responded-later']));
    expect([requestsAt('/responded'), requestsAt('/emitted')].map(({ length }) => length)).toEqual([1, 1]);
  });

  it(`finishes a delivery to a webhook that takes ${DELIVERY_MS / 1000} s, and does not deliver the event again`, async () => {
    receiver.respondWith = ({ body }) => (body?.n === 1 ? new Promise((resolve) => setTimeout(() => resolve(200), DELIVERY_MS)) : 200);
    const source = await api.source("export default { name: 'delivered' }");
    await api.subscribe(source.id, await api.webhook(`${receiver.url}delivered`));
    await producer.emit(source.id, [{ n: 1 }]);
    await arrival('/delivered');

    await whileStopped('routing', () => producer.emit(source.id, [{ n: 2 }]));
    await eventually(() => expect(requestsAt('/delivered').map(({ body }) => body)).toEqual([{ n: 1 }, { n: 2 }]));
  });

  it('leaves the deliveries that wait for a slow webhook to the next process, which does not repeat those of the same events to another webhook', async () => {
    const events = Array.from({ length: 30 }, (_, n) => ({ n }));
    receiver.respondWith = async ({ path, body }) => {
      if (path === '/waiting' && body?.n < 3) await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
      return 200;
    };
    const source = await api.source("export default { name: 'waited for' }");
    for (const path of ['waiting', 'prompt']) await api.subscribe(source.id, await api.webhook(`${receiver.url}${path}`));
    await producer.emit(source.id, events);
    await eventually(() => expect([requestsAt('/waiting').length, requestsAt('/prompt').length]).toEqual([2, events.length]));

    await whileStopped('routing', () => producer.emit(source.id, [{ n: events.length }]));
    const all = [...events, { n: events.length }];
    await eventually(() => expect(requestsAt('/waiting').map(({ body }) => body)).toEqual(all));
    await eventually(() => expect(requestsAt('/prompt').map(({ body }) => body)).toEqual(all));
  });

  it(`responds to a request of ${FETCH_MS / 1000} s to the REST API`, async () => {
    files = createServer((_, response) => setTimeout(() => response.end("export default { name: 'slowly fetched' }"), FETCH_MS));
    const asked = new Promise((resolve) => files?.once('request', resolve));
    const response = api.post('/components', { component_url: `http://${await listenForTarget(files)}/component.mjs` });
    await asked;

    await whileStopped('gateway', async () =>
      expect(await response).toMatchObject({ status: 200, body: { data: { name: 'slowly fetched' } } }),
    );
    expect((await api.get('/users/me')).status).toBe(200);
  });

  it('does not wait for clients that keep sending requests to which the component responds', async () => {
    const component = `export default { name: 'busy', props: { http: { type: '$.interface.http', customResponse: true } },
      async run() {
        await new Promise((resolve) => setTimeout(resolve, 500));
        this.http.respond({ status: 200 });
      } }`;
    const sources = await Promise.all([1, 2, 3, 4].map(() => api.source(component)));
    let asking = true;
    const statuses = new Set<number>();
    const ask = async (url: string) => {
      while (asking) {
        const response = await http('POST', url).catch(() => undefined);
        if (response) statuses.add(response.status);
        else await new Promise((resolve) => setTimeout(resolve, 50));
      }
    };
    // two of each, so that one waits while the other runs
    const clients = [...sources, ...sources].map(({ configured_props }) => ask(configured_props.http.endpoint_url));
    try {
      await eventually(() => expect(statuses).toContain(200));
      const begin = performance.now();
      await whileStopped('runtime', async () => expect(performance.now() - begin).toBeLessThan(STOPPED_WITHIN_MS));
    } finally {
      asking = false;
    }
    await Promise.all(clients);
    expect([...statuses]).toEqual([200]);
  });

  it('does not wait for clients that keep asking over one connection, or for live streams that reconnect', async () => {
    const source = await api.source("export default { name: 'watched' }");
    let asking = true;
    const ask = async () => {
      while (asking) await api.get(`/sources/${source.id}`).catch(() => new Promise((resolve) => setTimeout(resolve, 50)));
    };
    const watch = async () => {
      while (asking) {
        const stream = await EventStream.open(api, `/sources/${source.id}/sse`).catch(() => undefined);
        if (asking) await (stream?.closed ?? new Promise((resolve) => setTimeout(resolve, 50)));
        stream?.close();
      }
    };
    const clients = [ask(), ask(), ask(), ask(), watch(), watch()];
    try {
      await api.get(`/sources/${source.id}`);
      const begin = performance.now();
      await whileStopped('gateway', async () => expect(performance.now() - begin).toBeLessThan(STOPPED_WITHIN_MS));
    } finally {
      asking = false;
    }
    // ends the streams that are open
    await system.apps.stop('gateway');
    await Promise.all(clients);
    await system.apps.start('gateway');
  });
});
