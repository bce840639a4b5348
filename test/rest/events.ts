import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Api } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { needing } from '../support/target.js';
import { keysOf, QUIET, type World } from './world.js';

export const events = (world: () => World) =>
  describe('events', () => {
    let api: Api;
    let otherAccount: Api;
    beforeAll(async () => {
      api = await world().system.account();
      otherAccount = await world().system.account();
    });
    const page = async (id: string, query = '') => (await api.get(`/sources/${id}/event_summaries${query}`)).body;
    const shown = async (id: string, query = '?limit=100') => (await page(id, query)).data.map(({ event }: any) => event);
    /** Creates a source that has emitted these events. */
    const emitted = async (list: unknown[]): Promise<any> => {
      const source = await api.source(QUIET);
      await world().producer.emit(source.id, list);
      await eventually(async () => expect((await page(source.id)).page_info.total_count).toBe(Math.min(100, list.length)));
      return source;
    };
    const count = (n: number) => Array.from({ length: n }, (_, i) => ({ n: i }));

    describe('are summarised', () => {
      let source: any;
      let all: any[];
      beforeAll(async () => {
        source = await emitted(count(12));
        all = (await page(source.id, '?limit=100')).data;
      });
      it('newest first, ten at a time, with exactly their fields', async () => {
        const body = await page(source.id);
        expect(keysOf(body)).toEqual(['data', 'page_info']);
        expect(body.data.map(({ event }: any) => event.n)).toEqual([11, 10, 9, 8, 7, 6, 5, 4, 3, 2]);
        expect(body.page_info).toEqual({ total_count: 12, count: 10, start_cursor: body.data[0].id, end_cursor: body.data[9].id });
        for (const each of body.data) {
          expect(keysOf(each)).toEqual(['event', 'id', 'indexed_at_ms', 'metadata']);
          expect(keysOf(each.metadata)).toEqual(['emit_id', 'emitter_id', 'name']);
          expect(each.id).toMatch(/^\d{13}-\d+$/);
          expect(each.metadata).toMatchObject({ emitter_id: source.id, name: '' });
          expect(Math.abs(each.indexed_at_ms - Date.now())).toBeLessThan(600_000);
        }
      });
      it('events are summarised in pages by the ids of events', async () => {
        const ids = all.map(({ id }) => id);
        const idsOf = async (query: string) => (await page(source.id, query)).data.map(({ id }: any) => id);
        expect(await idsOf(`?limit=3&after=${ids[2]}`)).toEqual(ids.slice(3, 6));
        expect(await idsOf(`?limit=3&before=${ids[8]}`)).toEqual(ids.slice(5, 8));
        expect(await idsOf(`?after=${ids[1]}&before=${ids[6]}`)).toEqual(ids.slice(2, 6));
        expect(await idsOf('?after=9999999999999-0&limit=2')).toEqual(ids.slice(0, 2));
        expect(await page(source.id, `?after=${ids[11]}`)).toEqual({
          page_info: { total_count: 12, count: 0, start_cursor: null, end_cursor: null },
          data: [],
        });
      });
      it.each([
        'limit=0',
        'limit=101',
        'limit=abc',
        'after=x',
        'before=1-',
        'before=01700000000000-0',
        'after=ZGNfMDAwMDAwMDAw',
        'event_name=a%00b',
        'event_name=$other',
        `event_name=${'x'.repeat(129)}`,
      ])('but with %s return 400', async (query) => {
        expect((await api.get(`/sources/${source.id}/event_summaries?${query}`)).status).toBe(400);
        expect((await api.get(`/sources/dc_000000000000000000/event_summaries?${query}`)).status).toBe(400);
        expect((await api.get(`/sources/nope/event_summaries?${query}`)).status).toBe(400);
      });
      it('events are summarised with the requested fields only', async () => {
        expect(keysOf((await page(source.id, '?include=id,event')).data[0])).toEqual(['event', 'id']);
        expect(keysOf((await page(source.id, '?exclude=event')).data[0])).toEqual(['id', 'indexed_at_ms', 'metadata']);
      });
      needing('accounts').it('but not for another account, which gets 404', async () => {
        for (const path of ['event_summaries', 'events', 'logs'])
          for (const id of [source.id, 'dc_000000000000000000', 'nope'])
            expect((await otherAccount.get(`/sources/${id}/${path}`)).status).toBe(404);
        expect((await otherAccount.delete(`/sources/${source.id}/events`)).status).toBe(404);
        expect((await api.get(`/workflows/p_000000000000000000/event_summaries`)).status).toBe(404);
      });
      it('events are summarised in full and without page_info for clients that poll', async () => {
        const { body } = await api.get(`/sources/${source.id}/events?limit=2`);
        expect(keysOf(body)).toEqual(['data']);
        expect(body.data).toEqual(all.slice(0, 2).map(({ id, indexed_at_ms, event }) => ({ id, ts: indexed_at_ms, k: 'emit', e: event })));
      });
    });

    it('events have any JSON value exactly as it was emitted', async () => {
      const values = [null, true, 0, -1.5e300, '', 'ünï💧\u0000', [], {}, [null, [1]], { a: { b: [] }, $truncated: 'mine' }];
      const source = await emitted(values);
      expect(await shown(source.id)).toEqual([...values].reverse());
      expect(await shown(source.id, '?expand=event')).toEqual([...values].reverse());
    });
    it('truncated to valid JSON of at most 1 KB, unless they are expanded', async () => {
      const filled = (bytes: number) => ({ a: 1, t: 'x'.repeat(bytes - '{"a":1,"t":""}'.length) });
      const list = [
        filled(1024),
        filled(1025),
        { first: 1, ...filled(5000), last: 2 },
        Array.from({ length: 900 }, (_, n) => n),
        'ü'.repeat(2000),
      ];
      const source = await emitted(list);
      expect(await shown(source.id, '?expand=event')).toEqual([...list].reverse());
      const [text, array, big, over, at] = await shown(source.id);
      expect(at).toEqual(filled(1024));
      expect(over).toEqual({ a: 1, $truncated: true });
      expect(big).toEqual({ first: 1, a: 1, $truncated: true });
      expect(array.value.slice(0, 5)).toEqual([0, 1, 2, 3, 4]);
      expect(text.value).toMatch(/^ü{400,}$/);
      for (const each of [text, array, big, over]) {
        expect(each.$truncated).toBe(true);
        expect(Buffer.byteLength(JSON.stringify(each))).toBeLessThanOrEqual(1024);
      }
      expect((await api.get(`/sources/${source.id}/events`)).body.data.map(({ e }: any) => e)).toEqual([...list].reverse());
    });
    it.each([
      ['too large', Buffer.from(`"${'x'.repeat(1024 * 1024)}"`), {}, 'the limit is'],
      ['not JSON', Buffer.from('{'), {}, 'not JSON'],
      ['not UTF-8', Buffer.from([0x22, 0xff, 0x22]), {}, 'not UTF-8'],
      ['nested too deeply', Buffer.from(`${'['.repeat(300)}${']'.repeat(300)}`), {}, 'nested deeper'],
      ['on a reserved stream', Buffer.from('1'), { ce_sluicestream: '$in' }, 'names no stream'],
      ['with a time that no database can store', Buffer.from('1'), { ce_time: 'a\0' }, 'NUL'],
    ])('from a producer that are %s are reported on $errors', async (_, value, headers, message) => {
      const source = await emitted(count(1));
      await world().producer.send(source.id, value, headers);
      await eventually(async () => {
        const { data } = await page(source.id, '?event_name=$errors');
        expect(data).toMatchObject([{ event: { error: { code: 'MalformedEvent', message: expect.stringContaining(message) } } }]);
      });
      expect((await page(source.id)).data).toHaveLength(1);
    });

    it('are stored up to the last 100 of each stream', async () => {
      const source = await emitted(count(130));
      const kept = await eventually(async () => {
        const list = await shown(source.id);
        expect(list[0].n).toBe(129);
        return list;
      });
      expect(kept.map(({ n }: any) => n)).toEqual(Array.from({ length: 100 }, (_, i) => 129 - i));
      for (const name of ['mine', '$logs', '$errors'])
        await world().producer.emit(source.id, [{ name }], { ce_type: name, ce_id: `id-${name}` });
      for (const name of ['mine', '$logs', '$errors'])
        await eventually(async () =>
          expect((await page(source.id, `?event_name=${encodeURIComponent(name)}`)).data).toMatchObject([
            { event: { name }, metadata: { name, emit_id: `id-${name}` } },
          ]),
        );
      expect((await api.get(`/sources/${source.id}/logs`)).body.data).toMatchObject([{ event: { name: '$logs' } }]);
      for (const query of ['', '?event_name=', '?event_name=default'])
        expect((await page(source.id, query)).page_info.total_count).toBe(100);
    });
    it('have the summary, id and time that their emitter set', async () => {
      const source = await api.source("export default { name: 'm', run() { this.$emit({}, { id: 5, summary: 'S', ts: 1700000000 }) } }");
      await api.post(`/sources/${source.id}/run`);
      const { metadata } = await eventually(async () => {
        const { data } = await page(source.id);
        expect(data).toHaveLength(1);
        return data[0];
      });
      expect(metadata).toMatchObject({ id: '5', summary: 'S', ts: 1_700_000_000_000 });
    });

    describe('are deleted', () => {
      const range = (start?: string, end?: string) =>
        new URLSearchParams({ ...(start && { start_id: start }), ...(end && { end_id: end }) }).toString();
      it.each([
        ['all', [], [], []],
        ['from one event on', [3], [], [0, 1, 2]],
        ['up to one event', [], [3], [4, 5]],
        ['in a range', [1], [4], [0, 5]],
        ['exactly one event', [2], [2], [0, 1, 3, 4, 5]],
      ])('%s: returns 202, and later ones are kept', async (_, [start], [end], left) => {
        const source = await emitted(count(6));
        const ids = (await page(source.id)).data.map(({ id }: any) => id).reverse();
        const response = await api.delete(`/sources/${source.id}/events?${range(ids[start ?? -1], ids[end ?? -1])}`);
        expect([response.status, response.body]).toEqual([202, { data: {} }]);
        await world().producer.emit(source.id, [{ n: 'later' }]);
        await eventually(async () => expect((await shown(source.id)).map(({ n }: any) => n).reverse()).toEqual([...left, 'later']));
      });
      it('by ids that never existed, because ids are positions', async () => {
        const source = await emitted(count(2));
        expect((await api.delete(`/sources/${source.id}/events?start_id=1-1&end_id=1-2`)).status).toBe(202);
        expect((await api.delete(`/sources/${source.id}/events?start_id=9999999999999-0`)).status).toBe(202);
        await world().producer.emit(source.id, [{ n: 'later' }]);
        await eventually(async () => expect((await shown(source.id)).map(({ n }: any) => n)).toEqual(['later', 1, 0]));
      });
      it('from one stream, or from all', async () => {
        const source = await emitted(count(1));
        await world().producer.emit(source.id, [{ n: 'm' }], { ce_type: 'mine' });
        await eventually(async () => expect((await page(source.id, '?event_name=mine')).data).toHaveLength(1));
        await api.delete(`/sources/${source.id}/events?event_name=mine`);
        await eventually(async () => expect((await page(source.id, '?event_name=mine')).data).toHaveLength(0));
        expect(await shown(source.id)).toHaveLength(1);
        await world().producer.emit(source.id, [{ n: 'm' }], { ce_type: 'mine' });
        await eventually(async () => expect((await page(source.id, '?event_name=mine')).data).toHaveLength(1));
        await api.delete(`/sources/${source.id}/events`);
        await eventually(async () => expect((await page(source.id, '?event_name=mine')).data).toHaveLength(0));
        expect(await shown(source.id)).toHaveLength(0);
      });
      it.each([
        'start_id=x',
        'end_id=5',
        'start_id=',
        'end_id=',
        'start_id=2-0&end_id=1-9',
        'start_id=5-2&end_id=5-1',
        'event_name=a%00b',
        'event_name=$nope',
        'start_id=1-1&start_id=2-2',
      ])('but not with %s, which returns 400', async (query) => {
        const source = await emitted(count(1));
        expect((await api.delete(`/sources/${source.id}/events?${query}`)).status).toBe(400);
        expect((await api.delete(`/sources/dc_000000000000000000/events?${query}`)).status).toBe(400);
        expect(await shown(source.id)).toHaveLength(1);
      });
      it('events are deleted in a range that is in the body', async () => {
        const source = await emitted(count(3));
        const ids = (await page(source.id)).data.map(({ id }: any) => id).reverse();
        expect((await api.delete(`/sources/${source.id}/events`, { start_id: ids[1], end_id: ids[1] })).status).toBe(202);
        await eventually(async () => expect((await shown(source.id)).map(({ n }: any) => n).reverse()).toEqual([0, 2]));
      });
      it('but not with a mistyped parameter, which would delete all of them', async () => {
        const source = await emitted(count(1));
        const inQuery = await api.delete(`/sources/${source.id}/events?startId=1-1`);
        const inBody = await api.delete(`/sources/${source.id}/events`, { end: '1-1' });
        expect([inQuery, inBody].map(({ status, body }) => [status, body.detail])).toEqual([
          [400, 'unknown parameter "startId"; did you mean start_id?'],
          [400, 'unknown field "end"; did you mean end_id?'],
        ]);
        expect(await shown(source.id)).toHaveLength(1);
      });
      it('but not from a source that does not exist, which returns 404', async () => {
        for (const id of ['dc_000000000000000000', 'nope']) expect((await api.delete(`/sources/${id}/events`)).status).toBe(404);
      });
    });
  });
