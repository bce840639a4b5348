import { beforeAll, describe, expect, it } from '@jest/globals';
import { type Api, http } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { needing } from '../support/target.js';
import { componentOf, keysOf, QUIET, STAMP, type World } from './world.js';

const LISTED = ['active', 'component_id', 'configured_props', 'created_at', 'id', 'name', 'name_slug', 'updated_at'];
const ANSWERED = [...LISTED, 'user_id'].sort();

export const sources = (world: () => World) =>
  describe('sources', () => {
    let api: Api;
    let otherAccount: Api;
    let component: any;
    beforeAll(async () => {
      api = await world().system.account();
      otherAccount = await world().system.account();
      component = (await api.post('/components', { component_code: QUIET })).body.data;
    });
    const create = (body: object) => api.post('/sources', body);
    const created = async (body: object) => (await create(body)).body.data;

    it('are created with exactly their fields, active; lists omit the owner', async () => {
      const { status, body } = await api.post('/sources/', { component_id: component.id, name: `First ${STAMP}` });
      expect(status).toBe(200);
      expect(keysOf(body.data)).toEqual(ANSWERED);
      expect(body.data).toMatchObject({
        user_id: api.account.id,
        component_id: component.id,
        active: true,
        name: `First ${STAMP}`,
        name_slug: `first-${STAMP}`,
        configured_props: {},
      });
      expect(body.data.id).toMatch(/^dc_[A-Za-z0-9]{12,}$/);
      const list = (await api.get('/users/me/sources/')).body;
      expect(keysOf(list)).toEqual(['data', 'page_info']);
      expect(keysOf(list.data[0])).toEqual(LISTED);
      const { user_id: _, ...listed } = body.data;
      expect(list.data[0]).toEqual(listed);
      expect((await api.get(`/sources/${body.data.id}`)).body).toEqual(body);
    });

    describe('use the first of several components that are given', () => {
      const code = componentOf('By Code');
      it.each([
        [
          'component_id',
          (): object => ({ component_id: component.id, component_code: '{{ not code', component_url: 'not a URL', key: 'none' }),
          'quiet-source',
        ],
        ['component_code', (): object => ({ component_code: code, component_url: 'not a URL', key: 'none' }), 'by-code'],
        ['key', (): object => ({ key: 'http-request' }), 'http-request'],
      ])('%s', async (_, body, name) => expect((await created(body())).name).toMatch(new RegExp(`^${name}`)));

      it('and treat null as absent', async () => {
        const body = { component_id: null, component_code: code, component_url: null, key: null, name: null, configured_props: null };
        expect(await created(body)).toMatchObject({ name: 'by-code' });
        expect((await create({ component_id: null })).status).toBe(400);
      });
      it('and return 400, naming the three, if none is given', async () => {
        for (const body of [{}, { name: 'x' }, { configured_props: {} }]) {
          const response = await create(body);
          expect(response.status).toBe(400);
          for (const field of ['component_id', 'component_code', 'component_url']) expect(response.body.error).toContain(field);
        }
      });
      it.each(['component_id', 'component_code', 'component_url', 'key'])('return 400 if %s is empty', async (field) => {
        const response = await create({ [field]: '' });
        expect([response.status, response.body.errors]).toEqual([400, [{ field, message: `${field} must not be empty` }]]);
      });
      it.each([
        ['an id that never was', () => ({ component_id: 'sc_000000000000000000' })],
        ['an id of another kind', () => ({ component_id: 'dc_000000000000000000' })],
        ['no id at all', () => ({ component_id: 'nope' })],
        ['an unknown key', () => ({ key: 'nobody-has-this' })],
      ])('return 404 for %s', async (_, body) => expect((await create(body())).status).toBe(404));
      needing('accounts').it("return 404 for another account's component", async () => {
        expect((await otherAccount.post('/sources', { component_id: component.id })).status).toBe(404);
      });
    });

    needing('accounts').it('without a name are named after their component, as a slug', async () => {
      const account = await world().system.account();
      const names = [];
      for (let i = 0; i < 3; i++) names.push((await account.post('/sources', { component_code: QUIET })).body.data);
      expect(names.map(({ name }) => name)).toEqual(['quiet-source', 'quiet-source', 'quiet-source']);
      expect(names.map(({ name_slug }) => name_slug)).toEqual(['quiet-source', 'quiet-source-1', 'quiet-source-2']);
      // another account has its own slugs
      expect((await otherAccount.post('/sources', { component_code: QUIET })).body.data.name_slug).toBe('quiet-source');
    });

    it.each([
      ['  Hello, World!  ', 'hello-world'],
      ['ÄÖÜ', 'source'],
      ['', 'source'],
      ['a__b--c', 'a-b-c'],
      ['💧 Drop 9', 'drop-9'],
    ])('a source with the name %j has the slug %s', async (name, slug) => {
      const source = await created({ component_id: component.id, name });
      expect(source.name).toBe(name);
      expect(source.name_slug).toMatch(new RegExp(`^${slug}(-\\d+)?$`));
    });

    it.each([
      ['a component id', (): object => ({ component_id: component.id, component_code: 5, component_url: {}, key: 7 })],
      ['code', () => ({ component_code: QUIET, component_url: 6, key: 7 })],
    ])('a source with %s ignores the fields without precedence, whatever they contain', async (_, body) => {
      const { status, body: source } = await create(body());
      expect(status).toBe(200);
      expect((await api.put(`/sources/${source.data.id}`, body())).status).toBe(200);
      expect((await api.patch(`/sources/${source.data.id}`, body())).status).toBe(200);
    });

    it('reject a name with a NUL character, and fields of another type', async () => {
      expect((await create({ component_id: component.id, name: 'a\0b' })).status).toBe(400);
      const { status, body } = await create({ component_id: 5, component_code: [], name: {}, configured_props: 'x' });
      expect(status).toBe(400);
      expect(body.errors.map(({ field }: { field: string }) => field).sort()).toEqual([
        'component_code',
        'component_id',
        'configured_props',
        'name',
      ]);
    });

    describe('return their timers and endpoints in another form than they are written', () => {
      const timer = componentOf('Timer', {
        timer: { type: '$.interface.timer', default: { intervalSeconds: 900 } },
        note: { type: 'string', optional: true },
      });
      it.each([
        [undefined, { cron: null, interval_seconds: 900 }],
        [{ intervalSeconds: 60 }, { cron: null, interval_seconds: 60 }],
        [
          { cron: null, interval_seconds: 61 },
          { cron: null, interval_seconds: 61 },
        ],
        [{ cron: '0 0 * * *' }, { cron: '0 0 * * *', interval_seconds: null }],
      ])('a timer of %j', async (written, read) => {
        const source = await created({ component_code: timer, configured_props: written && { timer: written } });
        expect(source.configured_props).toEqual({ timer: read });
      });
      it('an endpoint is written and shown in different forms', async () => {
        const source = await created({ component_code: componentOf('E', { http: '$.interface.http' }) });
        expect(keysOf(source.configured_props.http)).toEqual(['endpoint_url']);
        expect(source.configured_props.http.endpoint_url).toMatch(new RegExp(`^${world().system.endpointsUrl}/[A-Za-z0-9]{20,}$`));
        expect(source.configured_props.http.endpoint_url).not.toContain(source.id.slice(3));
        await eventually(async () => expect((await http('POST', source.configured_props.http.endpoint_url)).status).toBe(200));
      });
    });

    it('report one problem for each invalid prop', async () => {
      const props = {
        text: { type: 'string' },
        number: { type: 'integer' },
        flag: { type: 'boolean' },
        list: { type: 'string[]' },
        object: { type: 'object' },
        missing: { type: 'string' },
        timer: { type: '$.interface.timer' },
        fine: { type: 'any' },
        optional: { type: 'string', optional: true },
        defaulted: { type: 'string', default: 'x' },
      };
      const configured_props = {
        text: 1,
        number: '1',
        flag: 'true',
        list: [1],
        object: [],
        timer: { intervalSeconds: 0 },
        fine: 5,
        unknown: 1,
      };
      const { status, body } = await create({ component_code: componentOf('props', props), configured_props });
      expect(status).toBe(400);
      const bad = ['flag', 'list', 'missing', 'number', 'object', 'text', 'timer', 'unknown'];
      expect(body.errors.map(({ field }: { field: string }) => field).sort()).toEqual(bad.map((name) => `configured_props.${name}`));
      for (const { message } of body.errors) expect(body.error).toContain(message);
      expect(body.detail).toBe(body.error);
    });

    it.each([
      ['a timer without a value or default', { timer: { type: '$.interface.timer' } }, {}],
      ['a timer that is text', { timer: { type: '$.interface.timer' } }, { timer: '60' }],
      ['a fraction of seconds', { timer: { type: '$.interface.timer' } }, { timer: { intervalSeconds: 1.5 } }],
      ['both forms at once', { timer: { type: '$.interface.timer' } }, { timer: { intervalSeconds: 5, cron: '* * * * *' } }],
      ['a bad cron expression', { timer: { type: '$.interface.timer' } }, { timer: { cron: 'never' } }],
      ['an interface of another kind', { mail: '$.interface.email' }, {}],
      ['a prop that the component has not, whatever its name', {}, { constructor: 1 }],
    ])('reject %s', async (_, props, configured_props) => {
      expect((await create({ component_code: componentOf('p', props), configured_props })).status).toBe(400);
    });

    it('keep every key of a value', async () => {
      const car = { constructor: 'Ferrari', toString: 1, wheels: [{ constructor: {} }] };
      const source = await created({ component_code: componentOf('car', { car: 'object' }), configured_props: { car } });
      expect(source.configured_props).toEqual({ car });
      expect((await api.get(`/sources/${source.id}`)).body.data.configured_props).toEqual({ car });
    });

    describe('with PUT', () => {
      const withProps = componentOf(`With Props ${STAMP}`, {
        text: { type: 'string', default: 'd' },
        timer: { type: '$.interface.timer', default: { intervalSeconds: 3600 } },
      });
      let source: any;
      let kept: any;
      beforeAll(async () => {
        kept = (await api.post('/components', { component_code: withProps })).body.data;
        source = await created({ component_id: kept.id, name: 'Put Me', configured_props: { text: 'mine' } });
      });
      const put = (body: object) => api.put(`/sources/${source.id}`, body);

      it('return the same as on creation, and reset an omitted name and active to their defaults', async () => {
        const { status, body } = await put({ component_id: kept.id, active: false, name: `Other Name ${STAMP}` });
        expect(status).toBe(200);
        expect(keysOf(body.data)).toEqual(ANSWERED);
        expect(body.data).toMatchObject({
          id: source.id,
          active: false,
          name: `Other Name ${STAMP}`,
          name_slug: `other-name-${STAMP}`,
          configured_props: { text: 'mine', timer: { cron: null, interval_seconds: 3600 } },
        });
        expect((await api.get(`/sources/${source.id}`)).body).toEqual(body);
        expect((await api.put(`/sources/${source.id}/`, { component_id: kept.id })).body.data).toMatchObject({
          active: true,
          name: `with-props-${STAMP}`,
          name_slug: `with-props-${STAMP}`,
        });
        expect((await put({ component_id: kept.id, name: `with props ${STAMP}` })).body.data.name_slug).toBe(`with-props-${STAMP}`);
      });
      it('require a component', async () => {
        for (const body of [{}, { active: false }, { component_id: null }]) {
          const response = await put(body);
          expect(response.status).toBe(400);
          expect(response.body.error).toContain('component_id');
        }
        expect((await api.get(`/sources/${source.id}`)).body.data).toMatchObject({ active: true, component_id: kept.id });
      });
      it('prefer the id, then the code', async () => {
        const first = await put({ component_id: kept.id, component_code: '{{', component_url: 'x', key: 'none' });
        expect(first.body.data.component_id).toBe(kept.id);
        const second = await put({ component_code: `${withProps}//2`, component_url: 'x' });
        expect(second.body.data.component_id).not.toBe(kept.id);
        expect((await api.get(`/components/${second.body.data.component_id}`)).body.data.code).toBe(`${withProps}//2`);
      });
      it('take a component of the registry by key, after the other ways to choose one', async () => {
        const other = await created({ component_id: component.id });
        const { status, body } = await api.put(`/sources/${other.id}`, { key: 'http-request', component_id: null });
        expect([status, body.data.name]).toEqual([200, 'http-request']);
        expect(body.data.component_id).toBe((await api.get('/components/registry/http-request')).body.data.id);
        expect((await put({ component_id: kept.id, key: 'http-request' })).body.data.component_id).toBe(kept.id);
        expect((await put({ key: 'nobody-has-this' })).status).toBe(404);
      });
      it('replace all props if props are given: a timer that they omit gets its default', async () => {
        await put({ component_id: kept.id, configured_props: { text: 'new', timer: { intervalSeconds: 7200 } } });
        const { data } = (await put({ component_id: kept.id, configured_props: {} })).body;
        expect(data.configured_props).toEqual({ timer: { cron: null, interval_seconds: 3600 } });
        await put({ component_id: kept.id, configured_props: { text: 'mine' } });
      });
      it('store new props, and keep the props if they are omitted', async () => {
        const { data } = (await put({ component_id: kept.id, configured_props: { text: 'new', timer: { intervalSeconds: 7200 } } })).body;
        expect(data.configured_props).toEqual({ text: 'new', timer: { cron: null, interval_seconds: 7200 } });
        expect((await put({ component_id: kept.id, configured_props: null })).body.data.configured_props).toEqual(data.configured_props);
        expect((await put({ component_id: kept.id })).body.data.configured_props).toEqual(data.configured_props);
      });
      it('reject a component that the stored props do not fit, and change nothing', async () => {
        const before = (await api.get(`/sources/${source.id}`)).text;
        const response = await put({ component_code: componentOf('Others', { needed: { type: 'string' } }), name: 'n', active: false });
        expect(response.status).toBe(400);
        expect(response.body.errors.map(({ field }: { field: string }) => field).sort()).toEqual([
          'configured_props.needed',
          'configured_props.text',
          'configured_props.timer',
        ]);
        expect((await api.get(`/sources/${source.id}`)).text).toBe(before);
      });
      it.each([
        ['active that is not a boolean', { active: 'no' }, 400],
        ['an id that never was', { component_id: 'sc_000000000000000000' }, 404],
        ['code that is none', { component_code: 'nope(' }, 400],
      ])('a PUT with %s is refused', async (_, body, status) =>
        expect(
          (await put({ component_id: kept.id, ...('component_code' in body ? { component_id: undefined } : {}), ...body })).status,
        ).toBe(status),
      );
      it('return 400 for a malformed body, then 404, if the source does not exist', async () => {
        for (const id of ['dc_000000000000000000', 'nope', source.id.replace(/.$/, '_')]) {
          expect((await api.put(`/sources/${id}`, { active: 'no' })).status).toBe(400);
          expect((await api.put(`/sources/${id}`, {})).status).toBe(400);
          expect((await api.put(`/sources/${id}`, { component_id: kept.id })).status).toBe(404);
        }
      });
      needing('accounts').it("return 404 for another account's source, and use nothing of the body", async () => {
        expect(
          (await otherAccount.put(`/sources/${source.id}`, { component_code: "export default { name: 'x', key: 'left-nothing' }" })).status,
        ).toBe(404);
        expect((await otherAccount.get('/components/left-nothing')).status).toBe(404);
      });
    });

    describe('with PATCH', () => {
      const code = componentOf('Patched', {
        text: { type: 'string' },
        note: { type: 'object', optional: true },
        timer: { type: '$.interface.timer', default: { intervalSeconds: 3600 } },
      });
      let source: any;
      beforeAll(async () => {
        source = await created({ component_code: code, name: `Patch ${STAMP}`, configured_props: { text: 'a', note: { x: 1, y: 2 } } });
      });
      const patch = (body: object) => api.patch(`/sources/${source.id}`, body);
      const current = async () => (await api.get(`/sources/${source.id}`)).body.data;

      it('change only what is given', async () => {
        const { status, body } = await patch({ configured_props: { note: { z: 3 } } });
        expect(status).toBe(200);
        expect(keysOf(body.data)).toEqual(ANSWERED);
        const { updated_at: _, ...before } = source;
        expect(body.data).toMatchObject({ ...before, configured_props: { ...source.configured_props, note: { z: 3 } } });
        expect(body.data.configured_props.note).toEqual({ z: 3 });
        expect(await current()).toEqual(body.data);
        expect((await patch({ active: false })).body.data).toMatchObject({ active: false, name: source.name });
        expect((await patch({ name: `Renamed ${STAMP}` })).body.data).toMatchObject({ active: false, name_slug: `renamed-${STAMP}` });
        expect((await patch({ name: null, active: true })).body.data).toMatchObject({ active: true, name: 'patched' });
      });
      it('remove a prop by null, unless it is required', async () => {
        await patch({ configured_props: { timer: { intervalSeconds: 60 } } });
        const { data } = (await patch({ configured_props: { note: null, timer: null } })).body;
        expect(data.configured_props).toEqual({ text: 'a', timer: { cron: null, interval_seconds: 3600 } });
        const refused = await patch({ configured_props: { text: null } });
        expect([refused.status, refused.body.errors]).toMatchObject([400, [{ field: 'configured_props.text' }]]);
        expect((await current()).configured_props.text).toBe('a');
      });
      it('change nothing if nothing differs: not even the time of the change', async () => {
        const before = await current();
        expect((await patch({})).body.data).toEqual(before);
        expect((await patch({ component_code: code, name: before.name, configured_props: { text: 'a' } })).body.data).toEqual(before);
      });
      it.each([
        ['code', (): object => ({ component_code: `${code}//2` })],
        ['id', (): object => ({ component_id: component.id, key: 'none', configured_props: { text: null, timer: null } })],
        ['key', (): object => ({ key: 'http-request', configured_props: { text: null, timer: null } })],
      ])('take a component by %s, and keep the name', async (_, body) => {
        const other = await created({ component_code: code, name: 'Keep Me', configured_props: { text: 'a' } });
        const response = await api.patch(`/sources/${other.id}`, body());
        expect([response.status, response.body.data.name]).toEqual([200, 'Keep Me']);
        expect(response.body.data.component_id).not.toBe(other.component_id);
      });
      it.each([
        ['an unknown member', { nmae: 'x' }, 'nmae'],
        ['active that is null', { active: null }, 'active'],
        ['props that are null', { configured_props: null }, 'configured_props'],
        ['a prop that the component has not', { configured_props: { nope: 1 } }, 'configured_props.nope'],
        ['a name that is not text', { name: 5 }, 'name'],
        ['an empty external id', { external_id: '' }, 'external_id'],
        ['an external id that is too long', { external_id: 'x'.repeat(129) }, 'external_id'],
      ])('reject %s', async (_, body, field) => {
        const before = await current();
        const response = await patch(body);
        expect([response.status, response.body.errors.map((problem: { field: string }) => problem.field)]).toEqual([400, [field]]);
        expect(await current()).toEqual(before);
      });
      it.each([
        ['application/merge-patch+json', 200],
        ['application/json; charset=utf-8', 200],
        ['application/json-patch+json', 415],
        ['application/json-seq', 415],
        ['text/plain', 415],
      ])('a PATCH of the content type %s returns %d', async (type, status) => {
        expect((await api.raw('PATCH', `/sources/${source.id}`, '{"active":true}', { 'content-type': type })).status).toBe(status);
      });
      it('return 400 for a malformed body, then 404, if the source or its component does not exist', async () => {
        for (const id of ['dc_000000000000000000', 'nope']) {
          expect((await api.patch(`/sources/${id}`, { nmae: 'x' })).status).toBe(400);
          expect((await api.patch(`/sources/${id}`, {})).status).toBe(404);
        }
        expect((await patch({ component_id: 'sc_000000000000000000' })).status).toBe(404);
        expect((await patch({ key: 'nobody-has-this' })).status).toBe(404);
      });
    });

    describe('with an external id', () => {
      it('show it only where it is set, and are listed by it', async () => {
        const external_id = `ext ü ${STAMP}`;
        const source = await created({ component_id: component.id, external_id });
        expect(source.external_id).toBe(external_id);
        expect(await created({ component_id: component.id, external_id: null })).not.toHaveProperty('external_id');
        const list = (await api.get(`/users/me/sources?external_id=${encodeURIComponent(external_id)}`)).body;
        expect([list.page_info.total_count, list.data.map(({ id }: { id: string }) => id)]).toEqual([1, [source.id]]);
        expect((await api.get('/users/me/sources?external_id=nobody')).body).toMatchObject({ data: [], page_info: { total_count: 0 } });
        expect((await api.get('/users/me/sources?external_id=')).body.page_info.total_count).toBeGreaterThan(1);
        expect((await api.get(`/users/me/sources?external_id=${'x'.repeat(129)}`)).status).toBe(400);
      });
      it('return 409 for one that another source of the account has, however it is set', async () => {
        const external_id = `taken-${STAMP}`;
        const first = await created({ component_id: component.id, external_id });
        const other = await created({ component_id: component.id });
        expect((await create({ component_id: component.id, external_id })).status).toBe(409);
        expect((await api.patch(`/sources/${other.id}`, { external_id })).status).toBe(409);
        expect((await api.put(`/sources/${other.id}`, { component_id: component.id, external_id })).status).toBe(409);
        expect((await api.put(`/sources/${first.id}`, { component_id: component.id })).body.data.external_id).toBe(external_id);
        expect((await api.patch(`/sources/${first.id}`, { external_id: null })).body.data).not.toHaveProperty('external_id');
        expect((await api.patch(`/sources/${other.id}`, { external_id })).body.data.external_id).toBe(external_id);
      });
      it('may have one that a webhook has', async () => {
        const external_id = `both-${STAMP}`;
        expect((await api.post('/webhooks', { url: 'https://example.com/', external_id })).status).toBe(200);
        expect((await create({ component_id: component.id, external_id })).status).toBe(200);
      });
      it('exactly one of 20 concurrent creations is kept', async () => {
        const external_id = `race-${STAMP}`;
        const responses = await Promise.all(Array.from({ length: 20 }, () => create({ component_id: component.id, external_id })));
        expect(responses.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 19 }, () => 409)]);
      });
      needing('accounts').it('may have one that a source of another account has', async () => {
        const external_id = `islands-${STAMP}`;
        for (const account of [api, otherAccount])
          expect((await account.post('/sources', { component_code: QUIET, external_id })).body.data.external_id).toBe(external_id);
        expect((await otherAccount.get(`/users/me/sources?external_id=${external_id}`)).body.page_info.total_count).toBe(1);
      });
    });

    it('are deleted once, with 204 and an empty body', async () => {
      const source = await created({ component_id: component.id });
      const response = await api.delete(`/sources/${source.id}/`);
      expect([response.status, response.text]).toEqual([204, '']);
      for (const again of [
        await api.delete(`/sources/${source.id}`),
        await api.get(`/sources/${source.id}`),
        await api.get(`/sources/${source.id}/event_summaries`),
      ])
        expect(again.status).toBe(404);
      expect((await api.get('/users/me/sources?limit=100')).body.data.map(({ id }: { id: string }) => id)).not.toContain(source.id);
    });

    needing('accounts').it('cannot be deleted by another account', async () => {
      const source = await created({ component_id: component.id });
      expect((await otherAccount.delete(`/sources/${source.id}`)).status).toBe(404);
      expect((await api.get(`/sources/${source.id}`)).status).toBe(200);
    });

    it('run on request, unless they are inactive', async () => {
      const source = await created({ component_code: "export default { name: 'r', run(event) { this.$emit(event) } }" });
      const { status, body } = await api.post(`/sources/${source.id}/run`, { event: { x: [1] } });
      expect(status).toBe(202);
      expect(keysOf(body.data)).toEqual(['id']);
      await eventually(async () => {
        const { data } = (await api.get(`/sources/${source.id}/event_summaries`)).body;
        expect(data[0]).toMatchObject({ event: { x: [1] } });
      });
      await api.put(`/sources/${source.id}`, { component_id: source.component_id, active: false });
      expect((await api.post(`/sources/${source.id}/run`, {})).status).toBe(409);
    });
  });
