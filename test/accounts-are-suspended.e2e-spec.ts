import { afterAll, beforeAll, expect, it } from '@jest/globals';
import pg from 'pg';
import { type Api, http } from './support/api.js';
import { eventually } from './support/eventually.js';
import { outsideKafka } from './support/outside-kafka.js';
import { outsideProducer } from './support/producer.js';
import { Receiver } from './support/receiver.js';
import { joinSystem, type System } from './support/system.js';
import { can, needing, topic } from './support/target.js';

const CODE = `export default {
  name: 'Guest', key: 'guest-${Date.now()}',
  props: { http: '$.interface.http', guest: { type: 'app', app: 'guest' } },
  hooks: { activate() { this.$emit('activate'); }, deactivate() {} },
  run({ body }) { this.$emit(body); },
};`;
const WORKFLOW = `p_guest${Date.now().toString(36)}`;
const DATABASES = ['gateway', 'catalog', 'routing', 'event_store', 'runtime'];
/** Tables that keep the ids of deleted resources, so that late events are recognised. */
const REMEMBERING = ['emitter', 'workflow', 'deleted_source'];
/** Tables whose rows go by age. */
const BY_AGE = ['run_done', 'run_counted', 'finished_run', 'stat', 'outbox', 'error_seen'];

let system: System;
let receiver: Receiver;
let producer: Awaited<ReturnType<typeof outsideProducer>>;

beforeAll(async () => {
  system = await joinSystem();
  receiver = await Receiver.start();
  producer = await outsideProducer(system.brokers);
});
afterAll(async () => {
  await Promise.all([producer?.close(), receiver?.close()]);
  await system?.stop();
});

/** An account with a source, whose events a webhook receives. */
async function guest(path: string) {
  const api = await system.account();
  const connection = (await api.post('/connections', { app: 'guest', credentials: { key: 'x' } })).body.data.id as string;
  const source = await api.source(CODE, { configured_props: { guest: { authProvisionId: connection } } });
  const webhook = await api.webhook(`${receiver.url}${path}`);
  await api.subscribe(source.id, webhook);
  const endpoint: string = source.configured_props.http.endpoint_url;
  const call = (body: string) => http('POST', endpoint, { body, headers: { 'content-type': 'text/plain' } });
  const received = () => receiver.received.filter((request) => request.path === `/${path}`).map(({ body }) => body as unknown);
  return { api, source, webhook, connection, call, received };
}

const status = async (api: Api) => (await api.get('/users/me')).status;
const hooksOf = async (api: Api, id: string) =>
  (await api.get(`/sources/${id}/event_summaries`)).body.data
    .map(({ event }: any) => event)
    .filter((event: string) => event === 'activate');

/** The tables that contain the text, as `database.table`. */
async function tablesWith(text: string): Promise<string[]> {
  const found: string[] = [];
  for (const database of DATABASES) {
    const url = new URL(process.env.SLUICE_TEST_DATABASE_URL ?? '');
    url.pathname = `/${database}`;
    const client = new pg.Client({ connectionString: url.toString() });
    await client.connect();
    try {
      const { rows } = await client.query<{ tablename: string }>("SELECT tablename FROM pg_tables WHERE schemaname = 'public'");
      for (const { tablename } of rows) {
        const sql = `SELECT FROM "${tablename}" AS row WHERE position($1 IN row::text) > 0 LIMIT 1`;
        if ((await client.query(sql, [text])).rowCount) found.push(tablename);
      }
    } finally {
      await client.end();
    }
  }
  return [...new Set(found)];
}

needing('accounts', 'receiver').describe('an account', () => {
  it('a suspended account gets and runs nothing; resuming it brings everything back; others notice nothing', async () => {
    const [one, other] = [await guest('suspended'), await guest('beside')];
    await one.call('before');
    await eventually(() => expect(one.received()).toContain('before'));
    await eventually(async () => expect(await hooksOf(one.api, one.source.id)).toEqual(['activate']));

    const counts = { sources: 1, workflows: 0, webhooks: 1 };
    expect(await system.sluice('account', 'suspend', one.api.account.id)).toMatchObject({ suspended: true, ...counts });
    const refused = await one.api.get('/users/me/sources');
    expect([refused.status, refused.body.detail]).toEqual([403, 'this account is suspended']);
    const response = await one.call('during');
    expect([response.status, response.body.error]).toEqual([503, 'the account of this endpoint is suspended']);
    await producer.emit(one.source.id, ['produced during']);
    await other.call('meanwhile');
    await eventually(() => expect(other.received()).toContain('meanwhile'));
    // repeating it changes nothing
    expect(await system.sluice('account', 'suspend', one.api.account.id)).toMatchObject({ sources: 0, webhooks: 0 });

    expect(await system.sluice('account', 'resume', one.api.account.id)).toMatchObject({ suspended: false, ...counts });
    expect((await one.call('after')).status).toBe(200);
    await eventually(() => expect(one.received()).toContain('after'));
    expect(one.received().filter((body) => body !== 'activate')).toEqual(['before', 'after']);
    expect(await hooksOf(one.api, one.source.id)).toEqual(['activate']);
    expect((await one.api.get(`/sources/${one.source.id}`)).body.data).toEqual(one.source);
  });

  it('a deleted account leaves nothing; others notice nothing', async () => {
    const [one, other] = [await guest('deleted'), await guest('left')];
    const { id, email } = one.api.account;
    const kafka = outsideKafka(system.brokers).producer();
    await kafka.connect();
    const workflow = JSON.stringify({ id: WORKFLOW, owner_id: id, name: 'guest', active: true });
    await kafka.send({ topic: topic('workflows'), messages: [{ key: WORKFLOW, value: workflow }] });
    await eventually(async () => expect((await one.api.get(`/workflows/${WORKFLOW}/event_summaries`)).status).toBe(200));
    for (const guests of [one, other]) {
      await guests.call('before');
      await eventually(() => expect(guests.received()).toContain('before'));
    }

    await expect(system.sluice('account', 'delete', id)).rejects.toThrow('repeat the command with --yes');
    expect(await status(one.api)).toBe(200);
    // an operator may have suspended it before
    await system.sluice('account', 'suspend', id);
    expect(await system.sluice('account', 'delete', id, '--yes')).toEqual({
      ...{ id, deleted: true, sources: 1, workflows: 1, webhooks: 1, components: 1, connections: 1, subscriptions: 1, keys: 1 },
    });
    expect([await status(one.api), (await one.call('after')).status]).toEqual([401, 404]);
    expect((await system.sluice('account', 'list')).map((account: { id: string }) => account.id)).not.toContain(id);
    await expect(system.sluice('account', 'delete', id, '--yes')).rejects.toThrow(`account ${id} not found`);

    await other.call('after');
    await eventually(() => expect(other.received()).toContain('after'));
    expect((await other.api.get(`/components/${other.source.component_id}`)).body.data.code).toBe(CODE);
    await kafka.send({ topic: topic('workflows'), messages: [{ key: WORKFLOW, value: null }] });
    await kafka.disconnect();
    if (!can('processes') || !can('databases')) return;
    const left = async (text: string, allowed: string[]) => (await tablesWith(text)).filter((table) => !allowed.includes(table));
    await eventually(async () => {
      expect(await left(email, [])).toEqual([]);
      expect(await left(id, [...REMEMBERING, 'outbox'])).toEqual([]);
      for (const resource of [one.source.id, one.source.component_id, one.webhook, one.connection])
        expect([resource, await left(resource, [...REMEMBERING, ...BY_AGE])]).toEqual([resource, []]);
    });
  });
});
