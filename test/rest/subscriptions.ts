import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Api } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { needing } from '../support/target.js';
import { keysOf, QUIET, type World } from './world.js';

export const subscriptions = (world: () => World) =>
  describe('subscriptions', () => {
    let api: Api;
    let otherAccount: Api;
    let source: any;
    let webhook: string;
    let theirs: { source: any; webhook: string };
    beforeAll(async () => {
      api = await world().system.account();
      otherAccount = await world().system.account();
      source = await api.source(QUIET);
      webhook = await api.webhook(`${world().receiver.url}main`);
      theirs = { source: await otherAccount.source(QUIET), webhook: await otherAccount.webhook('https://example.com') };
    });
    const query = (parameters: object) => new URLSearchParams(parameters as Record<string, string>).toString();
    const create = (parameters: object, body?: object) => api.post(`/subscriptions?${query(parameters)}`, body);
    const remove = (parameters: object) => api.delete(`/subscriptions?${query(parameters)}`);
    /** The subscriptions of one listener; by default, the webhook that these tests share. */
    const list = async (listener = webhook) =>
      (await api.get('/users/me/subscriptions')).body.data.filter(({ listener_id }: any) => listener_id === listener);
    const pair = () => ({ emitter_id: source.id as string, listener_id: webhook });
    const bodiesAt = (path: string) =>
      world()
        .receiver.received.filter((request) => request.path === `/${path}`)
        .map(({ body }) => body);

    it('are returned as a list with exactly their fields; a repeated call returns the same', async () => {
      const { status, body } = await create(pair());
      expect(status).toBe(200);
      expect(keysOf(body)).toEqual(['data']);
      expect(body.data).toHaveLength(1);
      expect(keysOf(body.data[0])).toEqual(['emitter_id', 'event_name', 'id', 'listener_id']);
      expect(body.data[0]).toMatchObject({ ...pair(), event_name: '' });
      expect(body.data[0].id).toMatch(/^sub_[A-Za-z0-9]{12,}$/);
      expect((await create(pair())).body).toEqual(body);
      expect((await create({ ...pair(), event_name: '' })).body).toEqual(body);
      expect(await list()).toEqual(body.data);
      expect(keysOf((await api.get('/users/me/subscriptions/')).body)).toEqual(['data']);
    });
    it('keep the event name as it was sent, and are identified by it', async () => {
      const made = (await create({ ...pair(), event_name: 'default' })).body.data;
      expect(made[0].event_name).toBe('default');
      expect((await remove({ ...pair(), event_name: '$errors' })).status).toBe(404);
      const first = await remove(pair());
      expect([first.status, first.body.data.map((each: any) => each.event_name)]).toEqual([200, ['']]);
      expect((await remove({ ...pair(), event_name: '' })).status).toBe(404);
      expect((await remove({ ...pair(), event_name: 'default' })).body.data).toEqual(made);
      await create(pair());
      expect((await remove({ ...pair(), event_name: '' })).status).toBe(200);
      expect(await list()).toEqual([]);
    });
    it.each(['$errors', '$logs', 'default', 'mine', 'x'.repeat(128), 'ü'.repeat(128), '💧'.repeat(128), 'a b&c'])(
      'are created for the stream %j',
      async (event_name) => {
        expect((await create({ ...pair(), event_name })).body.data[0].event_name).toBe(event_name);
        expect((await remove({ ...pair(), event_name })).body.data).toHaveLength(1);
      },
    );
    it.each(['$in', '$error', '$', '$ERRORS', 'x'.repeat(129), 'a\0b'])('return 400 for the stream %j', async (event_name) => {
      const response = await create({ ...pair(), event_name });
      expect([response.status, response.body.errors.map(({ field }: any) => field)]).toEqual([400, ['event_name']]);
      expect((await api.post(`/auto_subscriptions?${query({ listener_id: webhook, event_name })}`)).status).toBe(400);
    });
    it('return 400 without emitter or listener', async () => {
      for (const send of [create, remove])
        for (const [parameters, fields] of [
          [{}, ['emitter_id', 'listener_id']],
          [{ emitter_id: source.id }, ['listener_id']],
          [{ listener_id: webhook }, ['emitter_id']],
        ] as const) {
          const response = await send(parameters);
          expect([response.status, response.body.errors.map(({ field }: any) => field).sort()]).toEqual([400, fields]);
        }
      expect((await create({ ...pair(), emitter_id: 'nope' })).status).toBe(400);
      expect((await create({ ...pair(), emitter_id: webhook })).status).toBe(400);
    });
    needing('accounts').it('return 404 for an emitter or listener that does not exist or belongs to another account', async () => {
      for (const parameters of [
        { emitter_id: 'dc_000000000000000000' },
        { emitter_id: 'p_000000000000000000' },
        { emitter_id: theirs.source.id },
        { emitter_id: otherAccount.account.id },
        { listener_id: 'wh_000000000000000000' },
        { listener_id: 'dc_000000000000000000' },
        { listener_id: 'p_000000000000000000' },
        { listener_id: theirs.webhook },
        { listener_id: theirs.source.id },
      ])
        expect([parameters, (await create({ ...pair(), ...parameters })).status]).toEqual([parameters, 404]);
      expect(await list()).toEqual([]);
      expect((await remove({ emitter_id: theirs.source.id, listener_id: theirs.webhook })).status).toBe(404);
    });
    it.each(['p_*', 'p_%2A', 'dc_*', 'dc_%2a'])('accept the glob %s', async (glob) => {
      const path = `/subscriptions?emitter_id=${glob}&listener_id=${webhook}`;
      expect((await api.post(path)).body.data[0].emitter_id).toBe(decodeURIComponent(glob));
      expect((await api.delete(path)).status).toBe(200);
    });
    it("accept the account's own id, and a JSON body", async () => {
      const own = { emitter_id: api.account.id, listener_id: webhook, event_name: '$errors' };
      expect((await api.post('/subscriptions', own)).body.data[0]).toMatchObject(own);
      expect((await create({ event_name: '$logs' }, own)).body.data[0].event_name).toBe('$logs');
      for (const event_name of ['$errors', '$logs']) expect((await remove({ ...own, event_name })).status).toBe(200);
    });
    needing('receiver', 'accounts').it('subscriptions of one listener that match the same event cause one delivery', async () => {
      const id = await api.webhook(`${world().receiver.url}once`);
      const parameters = [
        { emitter_id: source.id },
        { emitter_id: source.id, event_name: 'default' },
        { emitter_id: 'dc_*' },
        { emitter_id: api.account.id, event_name: 'default' },
      ];
      for (const each of parameters) await create({ ...each, listener_id: id });
      await world().producer.emit(source.id, [{ n: 1 }, { n: 2 }]);
      await eventually(() => expect(bodiesAt('once').map(({ n }) => n)).toContain(2));
      await world().producer.emit(source.id, [{ n: 3 }]);
      await eventually(() => expect(bodiesAt('once').map(({ n }) => n)).toContain(3));
      expect(bodiesAt('once')).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
      await api.delete(`/webhooks/${id}`);
    });
    it('are deleted with their emitter or listener', async () => {
      const [emitter, listener] = [await api.source(QUIET), await api.source(QUIET)];
      await create({ emitter_id: emitter.id, listener_id: webhook });
      await create({ emitter_id: 'dc_*', listener_id: listener.id });
      await create({ emitter_id: source.id, listener_id: listener.id, event_name: 'x' });
      await create(pair());
      await api.delete(`/sources/${emitter.id}`);
      await api.delete(`/sources/${listener.id}`);
      await eventually(async () => expect([...(await list()), ...(await list(listener.id))]).toMatchObject([pair()]));
      await remove(pair());
    });
    it('run a source that is a listener, with the event itself', async () => {
      const listener = await api.source("export default { name: 'l', run(event) { this.$emit({ got: event }) } }");
      await create({ emitter_id: source.id, listener_id: listener.id });
      await world().producer.emit(source.id, [[1, { a: null }]]);
      await eventually(async () =>
        expect((await api.get(`/sources/${listener.id}/event_summaries`)).body.data[0]?.event).toEqual({ got: [1, { a: null }] }),
      );
      await api.delete(`/sources/${listener.id}`);
    });

    describe('to later emitters', () => {
      const auto = (parameters: object) => api.post(`/auto_subscriptions?${query(parameters)}`);
      it('are returned with exactly their fields, listed and deleted', async () => {
        const parameters = { event_name: '$errors', listener_id: webhook };
        const { status, body } = await auto(parameters);
        expect([status, keysOf(body.data)]).toEqual([200, ['event_name', 'id', 'listener_id']]);
        expect(body.data).toMatchObject(parameters);
        expect((await auto(parameters)).body).toEqual(body);
        const listed = (await api.get('/users/me/auto_subscriptions/')).body;
        expect(listed).toEqual({ data: expect.arrayContaining([body.data]) });
        expect((await api.delete(`/auto_subscriptions?${query({ ...parameters, event_name: 'default' })}`)).status).toBe(404);
        const removed = await api.delete(`/auto_subscriptions?${query(parameters)}`);
        expect([removed.status, removed.body]).toEqual([200, { data: [body.data] }]);
        expect((await api.delete(`/auto_subscriptions?${query(parameters)}`)).status).toBe(404);
      });
      needing('accounts').it('require both parameters, and a listener that exists', async () => {
        expect((await auto({})).body.errors.map(({ field }: any) => field).sort()).toEqual(['event_name', 'listener_id']);
        for (const empty of [{}, { event_name: '' }]) expect((await auto({ listener_id: webhook, ...empty })).status).toBe(400);
        for (const listener_id of ['wh_000000000000000000', theirs.webhook, theirs.source.id])
          expect((await auto({ event_name: 'default', listener_id })).status).toBe(404);
      });
      needing('receiver').it('apply to later emitters only, from their very first event on', async () => {
        const id = await api.webhook(`${world().receiver.url}auto`);
        await auto({ event_name: 'default', listener_id: id });
        const rounds = 10;
        for (let n = 1; n <= rounds; n++) {
          const { data } = (await api.post('/sources', { component_id: source.component_id })).body;
          await world().producer.emit(data.id, [{ n }]);
        }
        await world().producer.emit(source.id, [{ n: 'of one that was there' }]);
        await eventually(() =>
          expect(
            bodiesAt('auto')
              .map(({ n }) => n)
              .sort((a, b) => a - b),
          ).toEqual(Array.from({ length: rounds }, (_, n) => n + 1)),
        );
        expect(await list(id)).toHaveLength(rounds);
        // the subscriptions that they created are kept
        expect((await api.delete(`/auto_subscriptions?${query({ event_name: 'default', listener_id: id })}`)).status).toBe(200);
        expect(await list(id)).toHaveLength(rounds);
      });
    });
  });
