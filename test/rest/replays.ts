import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Api } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { Receiver } from '../support/receiver.js';
import { needing } from '../support/target.js';
import { keysOf, QUIET, type World } from './world.js';

export const replays = (world: () => World) =>
  needing('receiver').describe('replays', () => {
    let api: Api;
    let emitter: any;
    let webhook: string;
    let ids: string[];
    const EVENTS = 120;
    const received = (path: string) => world().receiver.received.filter((request) => request.path === `/replays/${path}`);
    const hook = (path: string) => api.webhook(`${world().receiver.url}replays/${path}`);
    const create = (body: object) =>
      api.post('/replays', { emitter_id: emitter.id, from: 0, to: '9999999999999-0', listener_id: webhook, ...body });
    const done = (id: string) =>
      eventually(
        async () => {
          const { data } = (await api.get(`/replays/${id}`)).body;
          expect(data.status).toBe('done');
          return data;
        },
        { withinMs: 60_000 },
      );
    beforeAll(async () => {
      api = await world().system.account();
      emitter = await api.source(QUIET);
      webhook = await hook('main');
      const original = await hook('original');
      await api.subscribe(emitter.id, original);
      await world().producer.emit(
        emitter.id,
        Array.from({ length: EVENTS }, (_, n) => ({ n })),
      );
      await api.post(`/sources/${emitter.id}/events?event_name=mine`, { mine: true });
      await eventually(() => expect(received('original')).toHaveLength(EVENTS));
      ids = received('original').map(({ headers }) => String(headers['ce-sluiceevent']));
    });

    it('only count the events in a dry run', async () => {
      const { status, body } = await create({ dry_run: true });
      expect([status, body]).toEqual([200, { data: { events: EVENTS } }]);
      expect((await create({ dry_run: true, event_name: '*' })).body.data.events).toBe(EVENTS + 1);
      expect((await create({ dry_run: true, event_name: 'mine' })).body.data.events).toBe(1);
      expect((await create({ dry_run: true, from: ids[10], to: ids[19] })).body.data.events).toBe(10);
      expect((await create({ dry_run: true, to: '2020-01-01T00:00:00Z' })).body.data.events).toBe(0);
      expect(received('main')).toEqual([]);
    });

    it('count the events of each partition, although one fetch has no capacity for all of them', async () => {
      const sources = await Promise.all(Array.from({ length: 8 }, () => api.source(QUIET)));
      const from = new Date(Date.now() - 2000).toISOString();
      for (const { id } of sources)
        await world().producer.emit(
          id,
          Array.from({ length: 3 }, () => 'x'.repeat(100_000)),
        );
      for (const { id } of sources)
        await eventually(async () => expect((await api.get(`/sources/${id}/event_summaries`)).body.data).toHaveLength(3));
      for (const { id } of sources)
        expect((await create({ emitter_id: id, dry_run: true, from, to: new Date(Date.now() + 1000).toISOString() })).body).toEqual({
          data: { events: 3 },
        });
    });

    it('deliver all events of the log in order, also those that are no longer stored', async () => {
      const { status, body } = await create({});
      expect([status, body.data.events, keysOf(body.data)]).toEqual([202, EVENTS, ['events', 'id']]);
      const progress = await done(body.data.id);
      expect(progress).toEqual({ id: body.data.id, status: 'done', events: EVENTS, delivered: EVENTS, failed: 0 });
      const events = received('main').map(({ headers }) => String(headers['ce-sluiceevent']));
      expect(events).toEqual(ids);
      expect((await api.delete(`/replays/${body.data.id}`)).body.data).toEqual(progress);
    });

    it('let live events pass: each waits for one batch of replayed ones at most, and they keep their order', async () => {
      const slow = await Receiver.start();
      try {
        slow.respondWith = () => new Promise((resolve) => setTimeout(resolve, 20, 200));
        const listener = await api.webhook(slow.url);
        await api.subscribe(emitter.id, listener, 'live');
        const { data } = (await create({ listener_id: listener })).body;
        await eventually(() => expect(slow.received.length).toBeGreaterThan(0));
        const waited: number[] = [];
        for (let n = 0; n < 5; n++) {
          const before = slow.received.length;
          await api.post(`/sources/${emitter.id}/events?event_name=live`, { live: n });
          await eventually(() => expect(slow.received.filter(({ body }) => body.live === n)).toHaveLength(1));
          waited.push(slow.received.findIndex(({ body }) => body.live === n) - before);
        }
        const progress = await done(data.id);
        expect(progress).toMatchObject({ delivered: EVENTS, failed: 0 });
        // the live ones came while it was in progress, behind those that were in progress and a batch of 20
        expect(slow.received.slice(-1)[0]?.body).not.toHaveProperty('live');
        expect(Math.max(...waited)).toBeLessThan(60);
        const live = slow.received.filter(({ body }) => body.live !== undefined).map(({ body }) => body.live as number);
        expect(live).toEqual([0, 1, 2, 3, 4]);
      } finally {
        await slow.close();
      }
    });

    it('keep the webhook-id and the earlier attempts of each delivery', async () => {
      const first = (await api.get(`/webhooks/${webhook}/deliveries?limit=1`)).body.data[0];
      const before = received('main').find(({ headers }) => headers['ce-sluiceevent'] === first.event_id)!;
      const { data } = (await create({ from: first.event_id, to: first.event_id })).body;
      await done(data.id);
      const again = received('main').filter(({ headers }) => headers['ce-sluiceevent'] === first.event_id);
      expect(again.map(({ headers }) => headers['webhook-id'])).toEqual([before.headers['webhook-id'], before.headers['webhook-id']]);
      const delivery = async () => (await api.get(`/webhooks/${webhook}/deliveries`)).body.data.find(({ id }: any) => id === first.id);
      await eventually(async () =>
        expect(await delivery()).toMatchObject({ status: 'succeeded', attempts: [first.attempts[0], { status_code: 200 }] }),
      );
    });

    it('do not deliver deleted events', async () => {
      await api.delete(`/sources/${emitter.id}/events?start_id=${ids[5]}&end_id=${ids[7]}`);
      await eventually(async () => expect((await create({ dry_run: true })).body.data.events).toBe(EVENTS - 3));
    });

    it('run a source that listens', async () => {
      const listening = await api.source("export default { name: 'R', run(event) { this.$emit(event) } }");
      const { data } = (await create({ listener_id: listening.id, from: ids[20], to: ids[22] })).body;
      await done(data.id);
      await eventually(async () => {
        const page = (await api.get(`/sources/${listening.id}/event_summaries`)).body;
        expect(page.data.map(({ event }: any) => event.n).sort()).toEqual([20, 21, 22]);
      });
    });

    it('run a source once for an event whose emit id a producer has repeated, as live', async () => {
      const [repeating, listening] = [await api.source(QUIET), await api.source(QUIET)];
      for (let n = 0; n < 3; n++) await api.post(`/sources/${repeating.id}/events?id=order-7`, { n });
      await eventually(async () => expect((await api.get(`/sources/${repeating.id}/event_summaries`)).body.data).toHaveLength(1));
      const { data } = (await create({ emitter_id: repeating.id, listener_id: listening.id })).body;
      expect(await done(data.id)).toMatchObject({ events: 3, delivered: 3, failed: 0 });
      expect((await api.get(`/sources/${listening.id}/runs`)).body.data).toHaveLength(1);
    });

    it('let live runs of a source pass: each waits for a few replayed ones, and no more of them run once the replay is cancelled', async () => {
      const listening = await api.source(
        "export default { name: 'S', async run(event) { await new Promise((resolve) => setTimeout(resolve, 300)); this.$emit(event) } }",
      );
      await api.subscribe(emitter.id, listening.id, 'live');
      const ran = async (): Promise<any[]> =>
        (await api.get(`/sources/${listening.id}/event_summaries?limit=100`)).body.data.map(({ event }: any) => event);
      const { data } = (await create({ listener_id: listening.id })).body;
      await eventually(async () => expect((await ran()).length).toBeGreaterThan(0));
      const before = (await ran()).length;
      await api.post(`/sources/${emitter.id}/events?event_name=live`, { live: 'run' });
      await eventually(async () => expect(await ran()).toContainEqual({ live: 'run' }));
      expect((await ran()).reverse().findIndex(({ live }) => live === 'run') - before).toBeLessThan(10);
      const { body } = await api.delete(`/replays/${data.id}`);
      expect(body.data).toMatchObject({ status: 'cancelled', failed: 0 });
      expect(body.data.delivered).toBeLessThan(EVENTS / 2);
      // behind what would still come
      await api.post(`/sources/${emitter.id}/events?event_name=live`, { live: 'last' });
      await eventually(async () => expect(await ran()).toContainEqual({ live: 'last' }));
      expect((await ran()).length - body.data.delivered).toBeLessThan(10);
    });

    it('are cancelled when their listener is switched off', async () => {
      const off = await api.webhook('http://localhost:1/');
      const listening = await api.source("export default { name: 'T', run: () => new Promise((resolve) => setTimeout(resolve, 1000)) }");
      const ids = await Promise.all([off, listening.id].map(async (listener_id) => (await create({ listener_id })).body.data.id as string));
      await api.put(`/webhooks/${off}`, { active: false });
      await api.patch(`/sources/${listening.id}`, { active: false });
      for (const id of ids) await eventually(async () => expect((await api.get(`/replays/${id}`)).body.data.status).toBe('cancelled'));
    });

    it('are cancelled by DELETE', async () => {
      const dead = await api.webhook('http://localhost:1/');
      const { data } = (await create({ listener_id: dead })).body;
      const cancelled = await api.delete(`/replays/${data.id}`);
      expect([cancelled.status, cancelled.body.data.status]).toEqual([200, 'cancelled']);
      expect((await api.get(`/replays/${data.id}`)).body.data.status).toBe('cancelled');
    });

    it('are cancelled while a batch is delivered: it is delivered and counted, and nothing more', async () => {
      const slow = await Receiver.start();
      try {
        slow.respondWith = () => new Promise((resolve) => setTimeout(resolve, 100, 200));
        const listener = await api.webhook(slow.url);
        const { data } = (await create({ listener_id: listener })).body;
        const progress = async () => (await api.get(`/replays/${data.id}`)).body.data;
        await eventually(async () => expect((await progress()).delivered).toBeGreaterThan(2));
        const cancelled = (await api.delete(`/replays/${data.id}`)).body.data;
        expect(cancelled).toMatchObject({ status: 'cancelled', failed: 0 });
        await eventually(async () => expect(await progress()).toEqual({ ...cancelled, delivered: 20 }));
        // behind what would still come
        await done((await create({ listener_id: listener, from: ids.at(-1), to: ids.at(-1) })).body.data.id);
        expect(slow.received).toHaveLength(21);
      } finally {
        await slow.close();
      }
    });

    it.each([
      ['no ends', { from: undefined, to: undefined }],
      ['an end that is not a time', { from: 'yesterday' }],
      ['an end before the beginning', { from: '5-1', to: '4-1' }],
      ['a stream that cannot be replayed', { event_name: '$in' }],
      ['an unknown field', { until: 5 }],
      ['a listener of another kind', { listener_id: 'sc_000000000000000000' }],
    ])('return 400 for %s', async (_, body) => expect((await create(body)).status).toBe(400));

    it('return 400 for an inactive listener, and 404 for one that does not exist', async () => {
      const inactive = await hook('inactive');
      await api.put(`/webhooks/${inactive}`, { active: false });
      expect((await create({ listener_id: inactive })).status).toBe(400);
      expect((await create({ listener_id: 'wh_000000000000000000' })).status).toBe(404);
      expect((await create({ emitter_id: 'dc_000000000000000000' })).status).toBe(404);
      for (const id of ['rpl_000000000000000000', 'nope']) expect((await api.get(`/replays/${id}`)).status).toBe(404);
    });

    describe('of another account', () => {
      needing('accounts').it('do not exist, and its listeners get nothing', async () => {
        const otherAccount = await world().system.account();
        const theirs = await otherAccount.webhook('https://example.com/');
        expect((await create({ listener_id: theirs })).status).toBe(404);
        const { data } = (await create({ to: 1 })).body;
        expect((await otherAccount.get(`/replays/${data.id}`)).status).toBe(404);
        expect((await otherAccount.delete(`/replays/${data.id}`)).status).toBe(404);
      });
    });
  });
