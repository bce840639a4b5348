import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Api } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { needing } from '../support/target.js';
import { keysOf, QUIET, type World } from './world.js';

const CODE = `export default { name: 'Runs', hooks: { async activate() {} }, async run({ fail, emit = 0 }) {
  for (let n = 0; n < emit; n++) this.$emit(n);
  if (fail) throw new TypeError(fail);
} }`;

export const runs = (world: () => World) =>
  describe('runs', () => {
    let api: Api;
    let source: any;
    beforeAll(async () => {
      api = await world().system.account();
      source = await api.source(CODE);
    });
    const listed = async (id: string, query = '') => (await api.get(`/sources/${id}/runs${query}`)).body;
    const run = async (event: object) => (await api.post(`/sources/${source.id}/run`, { event })).body.data.id as string;

    it('are listed newest first with exactly their fields', async () => {
      const first = await run({ emit: 2 });
      const second = await run({ fail: 'out of paper' });
      const { data } = await eventually(async () => {
        const page = await listed(source.id);
        expect(page.data.map(({ id }: { id: string }) => id).slice(0, 2)).toEqual([second, first]);
        return page;
      });
      expect(keysOf(data[0])).toEqual(['duration_ms', 'emitted', 'error', 'id', 'method', 'started_at', 'status', 'trigger']);
      expect(data[0]).toMatchObject({
        ...{ trigger: 'manual', method: 'run', status: 'failed', emitted: 0 },
        error: { name: 'TypeError', message: 'out of paper', stack: expect.stringContaining('component') },
      });
      expect(data[1]).toMatchObject({ status: 'succeeded', emitted: 2, error: null });
      expect(Math.abs(data[1].started_at - Date.now() / 1000)).toBeLessThan(120);
      expect(data.at(-1)).toMatchObject({ trigger: 'hook', method: 'activate', status: 'succeeded' });
    });

    it('runs of hooks come before those that are requested after the change', async () => {
      for (let n = 0; n < 20; n++) {
        const { id } = await api.source(CODE);
        await api.post(`/sources/${id}/run`, { event: {} });
        await eventually(async () =>
          expect((await listed(id)).data.map(({ method }: { method: string }) => method)).toEqual(['run', 'activate']),
        );
        await api.delete(`/sources/${id}`);
      }
    });

    it('are listed in pages', async () => {
      const requested: string[] = [];
      for (let n = 0; n < 3; n++) requested.unshift(await run({}));
      await eventually(async () =>
        expect((await listed(source.id, '?limit=3')).data.map(({ id }: { id: string }) => id)).toEqual(requested),
      );
      const all = (await listed(source.id, '?limit=100')).data.map(({ id }: { id: string }) => id) as string[];
      const walked: string[] = [];
      for (let after = ''; ;) {
        const { page_info, data } = await listed(source.id, `?limit=2&after=${after}`);
        if (page_info.count === 0) break;
        walked.push(...data.map(({ id }: { id: string }) => id));
        after = page_info.end_cursor;
      }
      expect(walked).toEqual(all);
    });

    it('return 400 for a cursor of another list, and 404 for a source that does not exist', async () => {
      const cursor = Buffer.from(source.id).toString('base64url');
      expect((await api.get(`/sources/${source.id}/runs?after=${cursor}`)).status).toBe(400);
      expect((await api.get('/sources/dc_000000000000000000/runs')).status).toBe(404);
      expect((await api.get('/sources/dc_000000000000000000/runs?limit=0')).status).toBe(400);
    });

    describe('of options()', () => {
      const OPTIONS = `export default { name: 'Options', props: {
        region: 'string', plain: 'string',
        fixed: { type: 'string', options: ['a', { label: 'B', value: 'b' }], optional: true },
        city: { type: 'string', optional: true, async options({ query, page, prevContext }) {
          if (query === 'fail') throw new Error('the shop is closed');
          return { options: [this.region + ' ' + query + ' ' + page, { label: 'L', value: 7 }], context: { seen: prevContext } };
        } } } }`;
      let withOptions: any;
      beforeAll(async () => {
        withOptions = await api.source(OPTIONS, { configured_props: { region: 'north', plain: 'p' } });
      });
      const options = (name: string, body?: object) => api.post(`/sources/${withOptions.id}/props/${name}/options`, body);

      it('list the values of a prop, with the configured values of the others', async () => {
        const { status, body } = await options('city', { query: 'q', page: 1, prev_context: { n: 1 } });
        expect([status, body]).toEqual([
          200,
          {
            data: {
              options: [
                { label: 'north q 1', value: 'north q 1' },
                { label: 'L', value: 7 },
              ],
              context: { seen: { n: 1 } },
            },
          },
        ]);
        expect((await options('city', { configured_props: { region: 'south' } })).body.data.options[0].value).toBe('south null 0');
      });
      it('list those of a component, by id and by key of the registry', async () => {
        const path = `/components/${withOptions.component_id}/props/city/options`;
        const { body } = await api.post(path, { configured_props: { region: 'west' }, query: 'x' });
        expect(body.data.options[0].value).toBe('west x 0');
        expect((await api.post('/components/http-request/props/nope/options', {})).status).toBe(404);
      });
      it('are a fixed list as the component has it', async () => {
        expect((await options('fixed')).body.data).toEqual({ options: ['a', { label: 'B', value: 'b' }], context: null });
      });
      it('return 422 with the message of what is thrown', async () => {
        const { status, body } = await options('city', { query: 'fail' });
        expect([status, body.error]).toEqual([422, 'the shop is closed']);
      });
      it('return 400 for a prop without options and for a malformed body, and 404 for an unknown prop', async () => {
        expect((await options('plain')).status).toBe(400);
        for (const body of [{ page: -1 }, { page: 1.5 }, { query: 5 }, { prev_context: [] }, { configured_props: 'x' }, { pgae: 1 }])
          expect([body, (await options('city', body)).status]).toEqual([body, 400]);
        expect((await options('nope')).status).toBe(404);
        expect((await api.post('/sources/dc_000000000000000000/props/city/options')).status).toBe(404);
      });
      needing('accounts').it('are not run for another account', async () => {
        const otherAccount = await world().system.account();
        for (const path of [`/sources/${withOptions.id}`, `/components/${withOptions.component_id}`])
          expect((await otherAccount.post(`${path}/props/city/options`, {})).status).toBe(404);
        expect((await otherAccount.get(`/sources/${withOptions.id}/runs`)).status).toBe(404);
      });
      it('are not listed among the runs', async () => {
        const quiet = await api.source(QUIET);
        await api.post(`/sources/${quiet.id}/props/nope/options`);
        expect((await listed(withOptions.id)).data.filter(({ trigger }: any) => trigger !== 'hook')).toEqual([]);
      });
    });
  });
