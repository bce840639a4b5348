import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Api } from './support/api.js';
import { eventually } from './support/eventually.js';
import { joinSystem, type System } from './support/system.js';

const MASK = '••••••••';
const CODE = `
  const chat = { type: 'app', app: 'chat' };
  export default {
    name: 'Chatter',
    props: { chat, http: '$.interface.http', channel: { type: 'string', optional: true, async options() { return [this.chat.$auth.key]; } } },
    hooks: { async deactivate() { this.$emit({ deactivated: true }); } },
    run() { this.$emit({ auth: this.chat.$auth }); },
  };`;

let system: System;
let api: Api;
beforeAll(async () => {
  system = await joinSystem();
  api = await system.account();
});
afterAll(() => system?.stop());

const create = async (body: object) => (await api.post('/connections', body)).body.data;
const source = (chat: object) => api.source(CODE, { configured_props: { chat } });

/** The credentials that the newest run of the source received. */
async function authOf(id: string): Promise<unknown> {
  const before = (await api.get(`/sources/${id}/event_summaries`)).body.page_info.total_count;
  await api.post(`/sources/${id}/run`, {});
  return eventually(async () => {
    const { body } = await api.get(`/sources/${id}/event_summaries?expand=event`);
    expect(body.page_info.total_count).toBe(before + 1);
    return body.data[0].event.auth;
  });
}

describe('a connection', () => {
  it('shows the names of its credentials and never their values', async () => {
    const made = await create({ app: 'chat', credentials: { key: 'a', nested: { deep: 'b' } } });
    expect(made).toMatchObject({ id: expect.stringMatching(/^apn_/), app: 'chat', name: 'chat', credentials: { key: MASK, nested: MASK } });
    expect((await api.get(`/connections/${made.id}`)).body.data).toEqual(made);
    expect((await api.get('/connections?limit=1')).body).toMatchObject({ page_info: { count: 1 }, data: [made] });
  });

  it.each([
    ['no credentials', { app: 'chat' }],
    ['empty credentials', { app: 'chat', credentials: {} }],
    ['credentials that are null', { app: 'chat', credentials: { key: null } }],
    ['a mask without a value', { app: 'chat', credentials: { key: MASK } }],
    ['no app', { credentials: { key: 'a' } }],
    ['an empty app', { app: '', credentials: { key: 'a' } }],
    ['1001 credentials', { app: 'chat', credentials: Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`k${n}`, 1])) }],
  ])('is refused with %s', async (_, body) => {
    expect((await api.post('/connections', body)).status).toBe(400);
  });

  it('gives a source its credentials, and new ones at the next run without running hooks', async () => {
    const { id } = await create({ app: 'chat', name: 'mine', credentials: { key: 'old', more: 'kept' } });
    const user = await source({ authProvisionId: id });
    expect(user.configured_props.chat).toEqual({ authProvisionId: id });
    expect(await authOf(user.id)).toEqual({ key: 'old', more: 'kept' });
    const patched = await api.send('PATCH', `/connections/${id}`, { credentials: { key: 'new', more: MASK } });
    expect(patched.body.data).toMatchObject({ name: 'mine', credentials: { key: MASK, more: MASK } });
    expect(await authOf(user.id)).toEqual({ key: 'new', more: 'kept' });
    await api.send('PATCH', `/connections/${id}`, { credentials: { more: null } });
    expect(await authOf(user.id)).toEqual({ key: 'new' });
    expect((await api.send('PATCH', `/connections/${id}`, { credentials: { key: null } })).status).toBe(400);
  });

  it('cannot be deleted while a source uses it', async () => {
    const { id } = await create({ app: 'chat', credentials: { key: 'a' } });
    const user = await source({ authProvisionId: id });
    expect((await api.delete(`/connections/${id}`)).status).toBe(409);
    expect((await api.delete(`/sources/${user.id}`)).status).toBe(204);
    expect((await api.delete(`/connections/${id}`)).status).toBe(204);
    expect((await api.get(`/connections/${id}`)).status).toBe(404);
    expect((await api.post('/sources', { component_code: CODE, configured_props: { chat: { authProvisionId: id } } })).status).toBe(400);
  });

  it('gives its credentials to options(), of a component and of a source', async () => {
    const { id } = await create({ app: 'chat', credentials: { key: 'first' } });
    const other = await create({ app: 'chat', credentials: { key: 'second' } });
    const user = await source({ authProvisionId: id });
    const options = async (path: string, chat?: object) =>
      (await api.post(`${path}/props/channel/options`, { configured_props: chat && { chat } })).body.data?.options[0].value;
    expect(await options(`/components/${user.component_id}`, { authProvisionId: id })).toBe('first');
    expect(await options(`/components/${user.component_id}`, { $auth: { key: 'inline' } })).toBe('inline');
    expect(await options(`/sources/${user.id}`)).toBe('first');
    expect(await options(`/sources/${user.id}`, { authProvisionId: other.id })).toBe('second');
  });

  it('options() may not use a connection of another app, of another account, or one that does not exist', async () => {
    const { component_id } = await source({ $auth: { key: 'k' } });
    const [mail, foreign] = [
      await create({ app: 'mail', credentials: { key: 'a' } }),
      (await (await system.account()).post('/connections', { app: 'chat', credentials: { key: 'foreign' } })).body.data,
    ];
    for (const authProvisionId of [mail.id, foreign.id, 'apn_000000000000000000', 'nonsense']) {
      const { status, body } = await api.post(`/components/${component_id}/props/channel/options`, {
        configured_props: { chat: { authProvisionId } },
      });
      expect({ status, field: body.errors[0].field }).toEqual({ status: 400, field: 'configured_props.chat' });
    }
  });

  it('a connection of another app is refused', async () => {
    const { id } = await create({ app: 'mail', credentials: { key: 'a' } });
    const { status, body } = await api.post('/sources', { component_code: CODE, configured_props: { chat: { authProvisionId: id } } });
    expect({ status, field: body.errors[0].field }).toEqual({ status: 400, field: 'configured_props.chat' });
  });

  it('is made of inline credentials, and goes with its source', async () => {
    const user = await source({ $auth: { key: 'inline' } });
    const { authProvisionId, $auth } = user.configured_props.chat;
    expect($auth).toEqual({ key: MASK });
    expect(await authOf(user.id)).toEqual({ key: 'inline' });
    expect((await api.get(`/connections/${authProvisionId}`)).body.data).toMatchObject({ app: 'chat', credentials: { key: MASK } });
    expect((await api.delete(`/connections/${authProvisionId}`)).status).toBe(409);
    // sent back as it was shown
    const put = await api.put(`/sources/${user.id}`, {
      component_id: user.component_id,
      configured_props: { chat: user.configured_props.chat },
    });
    expect(put.body.data.configured_props.chat).toEqual(user.configured_props.chat);
    expect(await authOf(user.id)).toEqual({ key: 'inline' });
    await api.delete(`/sources/${user.id}`);
    expect((await api.get(`/connections/${authProvisionId}`)).status).toBe(404);
  });
});
