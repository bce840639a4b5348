import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Api } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { needing } from '../support/target.js';
import { keysOf, QUIET, type World } from './world.js';

const PATHS = 'history';

/** The outcome of events: their deliveries, and delivering them again. */
export const history = (world: () => World) =>
  needing('receiver').describe('the deliveries of an event', () => {
    let api: Api;
    let emitter: any;
    let listening: any;
    let webhook: string;
    let failing: string;
    let eventId: string;
    const path = (id: string) => `/sources/${emitter.id}/events/${id}/deliveries`;
    const received = (at: string) => world().receiver.received.filter((request) => request.path === `/${PATHS}/${at}`);
    const list = async (): Promise<any[]> => (await api.get(path(eventId))).body.data;
    const listed = async (id: string) => (await list()).find(({ listener_id }) => listener_id === id);
    beforeAll(async () => {
      api = await world().system.account();
      emitter = await api.source(QUIET);
      listening = await api.source("export default { name: 'L', run() { throw new Error('no') } }");
      webhook = await api.webhook(`${world().receiver.url}${PATHS}/ok`);
      failing = await api.webhook('http://localhost:1/');
      const inactive = await api.webhook(`${world().receiver.url}${PATHS}/off`);
      await api.put(`/webhooks/${inactive}`, { active: false });
      for (const id of [webhook, failing, inactive, listening.id]) await api.subscribe(emitter.id, id);
      await api.post(`/sources/${emitter.id}/events?id=kept`, { order: 1 });
      eventId = await eventually(async () => (await api.get(`/sources/${emitter.id}/event_summaries`)).body.data[0].id as string);
    });

    it('are every listener with its state, in exactly these fields', async () => {
      await eventually(async () => expect((await listed(webhook))?.status).toBe('succeeded'));
      await eventually(async () => expect((await listed(listening.id)).status).toBe('failed'));
      await eventually(async () => expect((await listed(failing)).attempts).toHaveLength(1));
      const all = await list();
      expect(all).toHaveLength(4);
      for (const each of all) expect(keysOf(each)).toEqual(['attempts', 'delivery_id', 'kind', 'listener_id', 'run_id', 'status']);
      expect(await listed(webhook)).toMatchObject({ kind: 'webhook', run_id: null, attempts: [{ status_code: 200 }] });
      expect(await listed(failing)).toMatchObject({ kind: 'webhook', status: 'pending', attempts: [{ status_code: null }] });
      expect(await listed(listening.id)).toMatchObject({ kind: 'source', delivery_id: null, attempts: [{ error: 'Error: no' }] });
      expect(all.filter(({ status }) => status === 'skipped')).toMatchObject([{ kind: 'webhook', delivery_id: null }]);
      const { run_id } = await listed(listening.id);
      expect((await api.get(`/sources/${listening.id}/runs`)).body.data.map(({ id }: any) => id)).toContain(run_id);
    });

    it('have ids that differ, and are those of the list of the webhook', async () => {
      const [one, other] = [await listed(webhook), await listed(failing)];
      expect(one.delivery_id).not.toBe(other.delivery_id);
      expect((await api.get(`/webhooks/${webhook}/deliveries`)).body.data[0].id).toBe(one.delivery_id);
      expect((await api.post(`/webhooks/${webhook}/deliveries/${other.delivery_id}/retry`)).status).toBe(404);
    });

    it('deliveries that succeeded are made again on request, with the same webhook-id and the attributes of the producer', async () => {
      const { delivery_id } = await listed(webhook);
      const again = await api.post(`/webhooks/${webhook}/deliveries/${delivery_id}/retry`);
      expect([again.status, again.body.data.id, again.body.data.status]).toEqual([202, delivery_id, 'pending']);
      await eventually(() => expect(received('ok')).toHaveLength(2));
      const [first, second] = received('ok');
      expect(second!.headers['webhook-id']).toBe(first!.headers['webhook-id']);
      expect(second!.headers['ce-id']).toBe('kept');
      expect(second!.text).toBe(first!.text);
      await eventually(async () => expect((await listed(webhook)).attempts).toHaveLength(2));
    });

    it('return 400 for an invalid event id, and 404 for an event or emitter that does not exist', async () => {
      expect((await api.get(path('nope'))).status).toBe(400);
      expect((await api.get(path('1-1'))).status).toBe(404);
      expect((await api.get(`/sources/dc_000000000000000000/events/${eventId}/deliveries`)).status).toBe(404);
      expect((await api.get(`/workflows/p_000000000000000000/events/${eventId}/deliveries`)).status).toBe(404);
    });

    it('are gone with the event: 404, and 409 for a retry', async () => {
      const { delivery_id } = await listed(webhook);
      expect((await api.delete(`/sources/${emitter.id}/events?start_id=${eventId}&end_id=${eventId}`)).status).toBe(202);
      await eventually(async () => expect((await api.get(path(eventId))).status).toBe(404));
      expect((await api.post(`/webhooks/${webhook}/deliveries/${delivery_id}/retry`)).status).toBe(409);
      expect(received('ok')).toHaveLength(2);
    });

    it('are what happened, whatever the subscriptions are later', async () => {
      const source = await api.source(QUIET);
      const ran = await api.source(QUIET);
      const off = await api.source(QUIET);
      await api.patch(`/sources/${off.id}`, { active: false });
      for (const { id } of [ran, off]) await api.subscribe(source.id, id);
      await api.post(`/sources/${source.id}/events`, {});
      const id = await eventually(async () => (await api.get(`/sources/${source.id}/event_summaries`)).body.data[0].id as string);
      const all = async (): Promise<any[]> => (await api.get(`/sources/${source.id}/events/${id}/deliveries`)).body.data;
      const of = async (listener: any) => (await all()).find(({ listener_id }) => listener_id === listener.id);
      await eventually(async () => expect((await of(ran))?.status).toBe('succeeded'));
      const before = await of(ran);
      await api.patch(`/sources/${ran.id}`, { active: false });
      expect(await of(ran)).toEqual(before);
      expect((await api.delete(`/subscriptions?emitter_id=${source.id}&listener_id=${ran.id}`)).status).toBe(200);
      expect(await of(ran)).toEqual(before);
      await api.patch(`/sources/${off.id}`, { active: true });
      expect(await of(off)).toMatchObject({ status: 'skipped', run_id: null });
      const later = await api.source(QUIET);
      await api.subscribe(source.id, later.id);
      await api.subscribe(source.id, await api.webhook(`${world().receiver.url}${PATHS}/later`));
      expect((await all()).map(({ listener_id }) => listener_id).sort()).toEqual([ran.id, off.id].sort());
      const replays = [off, later].map((listener) => ({ emitter_id: source.id, from: id, to: id, listener_id: listener.id }));
      for (const replay of replays) expect((await api.post('/replays', replay)).status).toBe(202);
      for (const listener of [off, later]) {
        await eventually(async () =>
          expect(await of(listener)).toMatchObject({ status: 'succeeded', run_id: expect.stringMatching(/^rpl_/) }),
        );
      }
    });

    describe('of an event beyond the last 100 of its stream', () => {
      it('is made again from the log', async () => {
        const source = await api.source(QUIET);
        const target = await api.webhook(`${world().receiver.url}${PATHS}/old`);
        await api.subscribe(source.id, target);
        await world().producer.emit(source.id, [{ n: 0 }]);
        const oldest = await eventually(async () => {
          const [delivery] = (await api.get(`/webhooks/${target}/deliveries`)).body.data;
          expect(delivery.status).toBe('succeeded');
          return delivery;
        });
        // the list of deliveries is limited, too: the later events must not get into it
        expect((await api.delete(`/subscriptions?emitter_id=${source.id}&listener_id=${target}`)).status).toBe(200);
        await world().producer.emit(
          source.id,
          Array.from({ length: 100 }, (_, n) => ({ n: n + 1 })),
        );
        await eventually(async () => {
          const { data } = (await api.get(`/sources/${source.id}/event_summaries?limit=100`)).body;
          expect(data).toHaveLength(100);
          expect(data.map(({ id }: { id: string }) => id)).not.toContain(oldest.event_id);
        });
        expect((await api.post(`/webhooks/${target}/deliveries/${oldest.id}/retry`)).status).toBe(202);
        await eventually(() => expect(received('old')).toHaveLength(2));
        const [first, second] = received('old');
        expect(second!.body).toEqual({ n: 0 });
        expect(second!.headers['webhook-id']).toBe(first!.headers['webhook-id']);
      });
    });
  });
