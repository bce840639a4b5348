import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Api } from '../support/api.js';
import { needing } from '../support/target.js';
import { componentOf, keysOf, QUIET, type World } from './world.js';

const PAGE_INFO = ['count', 'end_cursor', 'start_cursor', 'total_count'];

/** Lists of sources and of webhooks, in an account without others: pages, cursors, fields. */
export const pages = (world: () => World) =>
  needing('accounts').describe('lists', () => {
    let api: Api;
    const ids: Record<string, string[]> = { sources: [], webhooks: [] };
    beforeAll(async () => {
      api = await world().system.account();
      const { id } = (await api.post('/components', { component_code: QUIET })).body.data;
      for (let n = 0; n < 12; n++) {
        ids.sources!.unshift((await api.post('/sources', { component_id: id, name: `s ${n}` })).body.data.id);
        ids.webhooks!.unshift(await api.webhook(`https://example.com/${n}`));
      }
    });
    const cursor = (id: string) => Buffer.from(id).toString('base64url');

    describe.each(['sources', 'webhooks'])('of %s', (kind) => {
      const list = (query = '') => api.get(`/users/me/${kind}${query}`);
      const idsOf = async (query: string) => (await list(query)).body.data.map(({ id }: { id: string }) => id);
      const all = () => ids[kind]!;

      it('are newest first, ten at a time', async () => {
        const { body } = await list();
        expect(keysOf(body)).toEqual(['data', 'page_info']);
        expect(keysOf(body.page_info)).toEqual(PAGE_INFO);
        expect(body.data.map(({ id }: { id: string }) => id)).toEqual(all().slice(0, 10));
        expect(body.page_info).toEqual({ total_count: 12, count: 10, start_cursor: cursor(all()[0]!), end_cursor: cursor(all()[9]!) });
      });
      it('continue after the end with an empty page', async () => {
        const first = (await list('?limit=5')).body.page_info;
        const second = (await list(`?limit=5&after=${first.end_cursor}`)).body;
        expect(second.data.map(({ id }: { id: string }) => id)).toEqual(all().slice(5, 10));
        expect(second.page_info).toMatchObject({ total_count: 12, count: 5 });
        const last = (await list(`?after=${cursor(all()[11]!)}`)).body;
        expect(last).toEqual({ page_info: { total_count: 12, count: 0, start_cursor: null, end_cursor: null }, data: [] });
        expect((await list(`?before=${cursor(all()[0]!)}`)).body.data).toEqual([]);
      });
      it('return the page directly before a cursor', async () => {
        expect(await idsOf(`?limit=3&before=${cursor(all()[8]!)}`)).toEqual(all().slice(5, 8));
        expect(await idsOf(`?limit=50&before=${cursor(all()[3]!)}`)).toEqual(all().slice(0, 3));
      });
      it('return the window between two cursors, from its newer end', async () => {
        expect(await idsOf(`?after=${cursor(all()[1]!)}&before=${cursor(all()[6]!)}`)).toEqual(all().slice(2, 6));
        expect(await idsOf(`?limit=2&after=${cursor(all()[1]!)}&before=${cursor(all()[6]!)}`)).toEqual(all().slice(2, 4));
        expect(await idsOf(`?after=${cursor(all()[6]!)}&before=${cursor(all()[1]!)}`)).toEqual([]);
      });
      it.each(['0', '101', 'abc', '-1', '1.5', '', '1e1', '0x5', '010'])('return 400 for limit=%s', async (limit) => {
        const { status, body } = await list(`?limit=${limit}`);
        expect([status, body.errors]).toEqual([400, [{ field: 'limit', message: 'limit must be an integer from 1 to 100' }]]);
      });
      it('return 400 for a limit that is given twice', async () => {
        const { status, body } = await list('?limit=5&limit=6');
        expect([status, body.errors]).toEqual([400, [{ field: 'limit', message: 'limit must be given only once' }]]);
      });
      it.each(['1', '100'])('return 200 for limit=%s', async (limit) => expect((await list(`?limit=${limit}`)).status).toBe(200));
      it.each([
        ['garbage', 'garbage'],
        ['not base64', '!!!'],
        ['an id', () => all()[0]!],
        ['a padded one', () => `${cursor('dc_0000000000000')}=`],
        ['one of an event', '1763715600123-4096'],
        ['one of another kind', () => cursor(kind === 'sources' ? 'wh_000000000000000000' : 'dc_000000000000000000')],
      ])('return 400 for a cursor that is %s', async (_, value) => {
        for (const name of ['after', 'before']) {
          const { status, body } = await list(`?${name}=${encodeURIComponent(typeof value === 'string' ? value : value())}`);
          expect([status, body.errors?.[0].field]).toEqual([400, name]);
        }
      });
      it('treat an empty cursor as absent', async () => expect(await idsOf('?after=&before=')).toEqual(all().slice(0, 10)));
      it('accept a cursor whose row has been deleted', async () => {
        const [gone] = all().splice(4, 1);
        expect((await api.delete(`/${kind}/${gone}`)).status).toBe(204);
        expect(await idsOf(`?limit=2&after=${cursor(gone!)}`)).toEqual(all().slice(4, 6));
        expect(await idsOf(`?limit=2&before=${cursor(gone!)}`)).toEqual(all().slice(2, 4));
        expect((await list()).body.page_info.total_count).toBe(11);
      });
      it('return only the requested fields', async () => {
        const fields = async (query: string) => keysOf((await list(`?limit=1&${query}`)).body.data[0]);
        expect(await fields('include=id,name')).toEqual(['id', 'name']);
        expect(await fields('include=id,name&exclude=name')).toEqual(['id']);
        expect(await fields('include=nothing')).toEqual([]);
        expect(await fields('include=')).toEqual(await fields('exclude='));
        expect(await fields('exclude=id,active,nothing')).not.toContain('active');
        expect((await list('?include=id')).body.page_info.count).toBe(10);
      });
    });

    it('are empty for an account without items', async () => {
      const nobody = await world().system.account();
      for (const path of ['/users/me/sources', '/users/me/webhooks'])
        expect((await nobody.get(path)).body).toEqual({
          page_info: { total_count: 0, count: 0, start_cursor: null, end_cursor: null },
          data: [],
        });
      for (const path of ['/users/me/subscriptions', '/users/me/auto_subscriptions'])
        expect((await nobody.get(path)).body).toEqual({ data: [] });
    });

    describe('include and exclude', () => {
      it('are read from the query of GET', async () => {
        expect(keysOf((await api.get('/users/me?include=id,email')).body.data)).toEqual(['email', 'id']);
        expect(keysOf((await api.get('/components/registry/http-request?exclude=code')).body.data)).not.toContain('code');
        expect(keysOf((await api.get(`/sources/${ids.sources![0]}?include=name`)).body.data)).toEqual(['name']);
      });
      it('are read from the body of POST and PUT, and from the query, which takes precedence', async () => {
        const body = { component_code: QUIET, include: 'id,name', exclude: 'name' };
        const made = (await api.post('/components', body)).body.data;
        expect(keysOf(made)).toEqual(['id']);
        expect(keysOf((await api.post('/components?exclude=&include=code', body)).body.data)).toEqual(['code']);
        expect(keysOf((await api.post('/sources', { component_id: made.id, include: 'id' })).body.data)).toEqual(['id']);
        expect(keysOf((await api.put(`/sources/${ids.sources![0]}`, { component_id: made.id, include: 'active' })).body.data)).toEqual([
          'active',
        ]);
        expect(
          keysOf((await api.post(`/webhooks?url=${encodeURIComponent('https://x.example')}`, { exclude: 'url,description' })).body.data),
        ).not.toContain('url');
      });
      it('apply to the lists of subscriptions, and to the responses of POST and DELETE', async () => {
        const parameters = `?emitter_id=${ids.sources![0]}&listener_id=${ids.webhooks![0]}&include=id`;
        expect(keysOf((await api.post(`/subscriptions${parameters}`)).body.data[0])).toEqual(['id']);
        expect(keysOf((await api.get('/users/me/subscriptions?exclude=id')).body.data[0])).toEqual([
          'emitter_id',
          'event_name',
          'listener_id',
        ]);
        expect(keysOf((await api.delete(`/subscriptions${parameters}`)).body.data[0])).toEqual(['id']);
      });
      it('return 400 if they are not strings, and nothing is changed', async () => {
        const before = (await api.get('/users/me/webhooks')).body.page_info.total_count;
        expect((await api.post('/webhooks', { url: 'https://example.com', include: 5 })).status).toBe(400);
        expect((await api.get('/users/me/webhooks')).body.page_info.total_count).toBe(before);
      });
    });

    it('lists of large sources are as complete as others', async () => {
      const owner = await world().system.account();
      const props = { text: { type: 'string' } };
      const component = await owner.component(componentOf('Large', props));
      // more than a record of Kafka can have
      const text = 'x'.repeat(60_000);
      const body = { component_id: component, configured_props: { text } };
      const created = await Promise.all(Array.from({ length: 80 }, () => owner.post('/sources', body)));
      expect(created.map(({ status }) => status)).toEqual(Array(80).fill(200));
      const { data } = (await owner.get('/users/me/sources?limit=100')).body;
      expect(data.map(({ configured_props }: any) => configured_props.text === text)).toEqual(Array(80).fill(true));
    });
  });
