import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Api } from '../support/api.js';
import { needing } from '../support/target.js';
import { keysOf, STAMP, type World } from './world.js';

const LISTED = ['active', 'created_at', 'description', 'id', 'name', 'updated_at', 'url'];

export const webhooks = (world: () => World) =>
  describe('webhooks', () => {
    let api: Api;
    let otherAccount: Api;
    beforeAll(async () => {
      api = await world().system.account();
      otherAccount = await world().system.account();
    });
    const create = (parameters: Record<string, string>, body?: object) =>
      api.post(`/webhooks?${new URLSearchParams(parameters).toString()}`, body);

    it('are created from query parameters, with exactly their fields', async () => {
      const { status, body } = await create({ url: 'https://example.com:8443/a?b=c', name: 'N ü', description: 'D' });
      expect(status).toBe(200);
      expect(keysOf(body.data)).toEqual([...LISTED, 'user_id'].sort());
      expect(body.data).toMatchObject({
        user_id: api.account.id,
        name: 'N ü',
        description: 'D',
        url: 'https://example.com:8443/a?b=c',
        active: true,
      });
      expect(body.data.id).toMatch(/^wh_[A-Za-z0-9]{12,}$/);
      const listed = (await api.get('/users/me/webhooks')).body.data[0];
      expect(keysOf(listed)).toEqual(LISTED);
      const { user_id: _, ...rest } = body.data;
      expect(listed).toEqual(rest);
      expect((await api.get(`/webhooks/${body.data.id}`)).body).toEqual(body);
    });
    it('return null for an omitted name and description', async () => {
      expect((await create({ url: 'http://example.com' })).body.data).toMatchObject({ name: null, description: null });
    });
    it('accept a JSON body; the query takes precedence', async () => {
      const { data } = (await create({ name: 'query' }, { url: 'https://example.com/b', name: 'body', description: 'body' })).body;
      expect(data).toMatchObject({ url: 'https://example.com/b', name: 'query', description: 'body' });
    });
    it.each([
      '',
      'example.com',
      '//example.com',
      'ftp://example.com',
      'http://',
      'https:///path',
      'javascript:alert(1)',
      'http:example.com',
      'https://exa mple.com',
      'mailto:a@b.c',
      'http://a\0b',
    ])('return 400 for the URL %j', async (url) => {
      const response = await create({ url });
      expect([response.status, response.body.errors.map(({ field }: { field: string }) => field)]).toEqual([400, ['url']]);
    });
    it.each([
      'http://localhost',
      'https://example.com:1',
      'HTTPS://EXAMPLE.COM/X',
      'http://localhost:9/a',
      'http://93.184.216.34/',
      'https://user:pw@example.com/?q#f',
    ])('are created for %s', async (url) => {
      expect((await create({ url })).body.data.url).toBe(url);
    });
    it.each(['http://10.1.2.3/', 'http://0xa010203:8080/', 'https://[fc00::1]/', 'http://169.254.169.254/latest'])(
      'the private address %s is refused with 400, and the exception is named',
      async (url) => {
        const refused = await create({ url });
        expect([refused.status, refused.body.errors[0].field]).toEqual([400, 'url']);
        expect(refused.body.detail).toContain('SLUICE_ALLOW_PRIVATE_HOSTS');
        const { id } = (await create({ url: 'https://example.com/' })).body.data;
        expect((await api.put(`/webhooks/${id}`, { url })).status).toBe(400);
      },
    );
    it('return 400 without a URL or with invalid text', async () => {
      expect((await create({})).status).toBe(400);
      expect((await create({ url: 'https://example.com', name: 'a\0b' })).status).toBe(400);
      expect((await api.post('/webhooks?url=https://a.example&url=https://b.example')).status).toBe(400);
      expect((await api.post('/webhooks', { url: 5 })).status).toBe(400);
    });

    needing('receiver').it('are tried with a sample event, also while inactive; it is not listed', async () => {
      const { receiver } = world();
      const { id } = (await create({ url: `${receiver.url}tested` })).body.data;
      await api.put(`/webhooks/${id}`, { active: false });
      const { status, body } = await api.post(`/webhooks/${id}/test`);
      expect(status).toBe(200);
      expect(body.data).toMatchObject({ status_code: 200, error: null });
      const [request] = receiver.received.filter(({ path }) => path === '/tested');
      expect(request?.body).toEqual({ test: true, webhook_id: id });
      expect(request?.headers).toMatchObject({ 'webhook-signature': expect.stringMatching(/^v1,/), 'ce-specversion': '1.0' });
      expect((await api.get(`/webhooks/${id}/deliveries`)).body.page_info.total_count).toBe(0);
      expect((await api.post('/webhooks/wh_000000000000000000/test')).status).toBe(404);
    });

    it('webhooks that refuse the sample event stay as they are', async () => {
      const { id } = (await create({ url: 'http://localhost:1/' })).body.data;
      expect((await api.post(`/webhooks/${id}/test`)).body.data).toMatchObject({ status_code: null, error: expect.any(String) });
      expect((await api.get(`/webhooks/${id}`)).body.data.active).toBe(true);
    });

    it('keep omitted fields on PUT', async () => {
      const { data } = (await create({ url: 'https://example.com/1', name: 'a', description: 'b' })).body;
      const put = async (body: object) => (await api.put(`/webhooks/${data.id}`, body)).body.data;
      expect(await put({ name: 'c' })).toMatchObject({ name: 'c', description: 'b', url: data.url, active: true });
      expect(await put({ active: false, description: null })).toMatchObject({ name: 'c', description: null, active: false });
      expect(await put({})).toMatchObject({ active: false });
      expect(await put({ active: true, url: 'https://example.com/2' })).toMatchObject({ active: true, url: 'https://example.com/2' });
      for (const body of [{ url: 'nope' }, { url: null }, { active: 'yes' }, { name: 5 }])
        expect([body, (await api.put(`/webhooks/${data.id}`, body)).status]).toEqual([body, 400]);
    });
    it('change with PATCH as with PUT', async () => {
      const { data } = (await create({ url: 'https://example.com/1', name: 'a' })).body;
      const patch = (body: object) => api.patch(`/webhooks/${data.id}`, body);
      expect((await patch({ description: 'b' })).body.data).toMatchObject({ name: 'a', description: 'b', url: data.url });
      expect((await patch({ name: null, active: false })).body.data).toMatchObject({ name: null, description: 'b', active: false });
      expect(keysOf((await patch({})).body.data)).toEqual([...LISTED, 'user_id'].sort());
      for (const body of [{ url: 'nope' }, { url: null }, { active: 'yes' }, { active: null }, { nmae: 'x' }])
        expect([body, (await patch(body)).status]).toEqual([body, 400]);
      const merge = { 'content-type': 'application/merge-patch+json' };
      expect((await api.raw('PATCH', `/webhooks/${data.id}`, '{"name":"m"}', merge)).body.data.name).toBe('m');
      expect((await api.raw('PATCH', `/webhooks/${data.id}`, '[]', { 'content-type': 'application/json-patch+json' })).status).toBe(415);
      expect((await api.patch('/webhooks/wh_000000000000000000', {})).status).toBe(404);
    });
    it('have an external id that is unique in the account and filters the list', async () => {
      const external_id = `wh-${STAMP}`;
      const { data } = (await create({ url: 'https://example.com/', external_id })).body;
      expect(data.external_id).toBe(external_id);
      const list = (await api.get(`/users/me/webhooks?external_id=${external_id}`)).body;
      expect([list.page_info.total_count, list.data[0].id, list.data[0].external_id]).toEqual([1, data.id, external_id]);
      expect((await create({ url: 'https://example.com/', external_id })).status).toBe(409);
      const other = (await create({ url: 'https://example.com/' })).body.data;
      expect(other).not.toHaveProperty('external_id');
      for (const change of [api.put, api.patch]) expect((await change(`/webhooks/${other.id}`, { external_id })).status).toBe(409);
      expect((await api.put(`/webhooks/${data.id}`, { name: 'n' })).body.data.external_id).toBe(external_id);
      expect((await api.patch(`/webhooks/${data.id}`, { external_id: null })).body.data).not.toHaveProperty('external_id');
      expect((await api.patch(`/webhooks/${other.id}`, { external_id })).body.data.external_id).toBe(external_id);
      expect((await create({ url: 'https://example.com/', external_id: '' })).status).toBe(400);
    });
    it('are deleted with 204, together with all of their subscriptions', async () => {
      const id = await api.webhook('https://example.com/gone');
      await api.subscribe('dc_*', id);
      await api.post(`/auto_subscriptions?event_name=default&listener_id=${id}`);
      const response = await api.delete(`/webhooks/${id}`);
      expect([response.status, response.text]).toEqual([204, '']);
      expect((await api.delete(`/webhooks/${id}`)).status).toBe(404);
      expect((await api.get(`/webhooks/${id}`)).status).toBe(404);
      for (const kind of ['subscriptions', 'auto_subscriptions'])
        expect((await api.get(`/users/me/${kind}`)).body.data.filter(({ listener_id }: any) => listener_id === id)).toEqual([]);
    });
    needing('accounts').it('webhooks of another account cannot be changed or deleted, and their secrets are not shown', async () => {
      const id = await api.webhook('https://example.com/mine');
      expect((await otherAccount.put(`/webhooks/${id}`, { name: 'mine' })).status).toBe(404);
      expect((await otherAccount.delete(`/webhooks/${id}`)).status).toBe(404);
      expect((await otherAccount.get(`/webhooks/${id}/secret`)).status).toBe(404);
      expect((await api.get(`/webhooks/${id}`)).body.data.name).toBe(null);
    });
    it('have a secret that is not listed, and can be rotated', async () => {
      const { data } = (await create({ url: 'https://example.com/s' })).body;
      const before = (await api.get(`/webhooks/${data.id}/secret`)).body.data;
      expect(keysOf(before)).toEqual(['secret']);
      expect(before.secret).toMatch(/^whsec_[A-Za-z0-9+/]+=*$/);
      const rotated = await api.post(`/webhooks/${data.id}/secret/rotate`);
      expect([rotated.status, keysOf(rotated.body.data)]).toEqual([200, ['previous_expires_at', 'secret']]);
      expect(rotated.body.data.secret).not.toBe(before.secret);
      expect(rotated.body.data.previous_expires_at - Date.now() / 1000).toBeGreaterThan(86_000);
      expect((await api.get(`/webhooks/${data.id}/secret`)).body.data).toEqual({ secret: rotated.body.data.secret });
      for (const path of ['/users/me/webhooks', `/webhooks/${data.id}`]) expect((await api.get(path)).text).not.toContain('whsec_');
    });
  });

export const idempotency = (world: () => World) =>
  describe('POSTs with an Idempotency-Key', () => {
    let api: Api;
    beforeAll(async () => {
      api = await world().system.account();
    });
    const post = (key: string, path: string, body?: object) => api.send('POST', path, body, { 'idempotency-key': `${key}-${STAMP}` });
    const count = async () => (await api.get('/users/me/webhooks')).body.page_info.total_count;
    const url = `url=${encodeURIComponent('https://example.com/i')}`;

    it('return the first response when repeated, and have no further effect', async () => {
      const before = await count();
      const first = await post('one', `/webhooks?${url}`);
      const second = await post('one', `/webhooks?${url}`);
      expect([second.status, second.text, second.headers['content-type']]).toEqual([200, first.text, first.headers['content-type']]);
      expect(await count()).toBe(before + 1);
    });
    it('repeat an error response, too', async () => {
      const missing = { component_id: 'sc_000000000000000000' };
      const first = await post('bad', '/sources', missing);
      const second = await post('bad', '/sources', missing);
      expect([second.status, second.text, second.headers['content-type']]).toEqual([404, first.text, 'application/problem+json']);
    });
    it('can be corrected with the same key if they were invalid', async () => {
      expect((await post('corrected', '/webhooks?url=nope')).status).toBe(400);
      expect((await post('corrected', `/webhooks?${url}`)).status).toBe(200);
    });
    it('return 422 with another payload', async () => {
      await post('two', `/webhooks?${url}`, { name: 'a' });
      expect((await post('two', `/webhooks?${url}`, { name: 'b' })).status).toBe(422);
      expect((await post('two', '/auto_subscriptions')).status).toBe(422);
    });
    needing('accounts').it('are separate for each account', async () => {
      const other = await world().system.account();
      const mine = await post('three', `/webhooks?${url}`);
      const theirs = await other.send('POST', `/webhooks?${url}`, undefined, { 'idempotency-key': `three-${STAMP}` });
      expect(theirs.body.data.id).not.toBe(mine.body.data.id);
    });
    it('create one resource when sent concurrently; the others return 409 or the first response', async () => {
      const before = await count();
      const responses = await Promise.all(Array.from({ length: 8 }, () => post('many', `/webhooks?${url}`)));
      for (const { status } of responses) expect([200, 409]).toContain(status);
      expect(await count()).toBe(before + 1);
    });
    it('return 400 with a malformed key; other methods ignore the header', async () => {
      expect((await post('x'.repeat(256), `/webhooks?${url}`)).status).toBe(400);
      expect((await api.send('GET', '/users/me', undefined, { 'idempotency-key': `one-${STAMP}` })).status).toBe(200);
    });
  });
