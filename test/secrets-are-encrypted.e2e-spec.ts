import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
// other stories leave records that the decoder of kafkajs does not survive, and dead letters are compressed with zstd, for which it has no codec
import '../libs/messaging/src/kafka.js';
import type { Api } from './support/api.js';
import { eventually } from './support/eventually.js';
import { outsideKafka } from './support/outside-kafka.js';
import { joinSystem, type System } from './support/system.js';
import { isSecured, needing, topic } from './support/target.js';

const DATABASES = ['gateway', 'catalog', 'routing', 'event_store', 'runtime'];
const MASK = '••••••••';

/** Planted texts, all of them values of props or credentials, that occur nowhere else. */
const planted = {
  prop: 'planted-prop-secret-6f1e',
  notSecret: 'planted-prop-that-is-not-secret-2b8d',
  auth: 'planted-auth-secret-93ab',
  changed: 'planted-changed-secret-77c0',
  connection: 'planted-connection-secret-18d4',
  patched: 'planted-patched-secret-e5b2',
  repeated: 'planted-repeated-secret-4c9a',
};
const CODE = `
  const app = { type: 'app', app: 'demo' };
  export default {
    name: 'Keeper',
    props: { token: { type: 'string', secret: true }, demo: app, http: '$.interface.http', open: 'string', more: { type: 'string', optional: true } },
    hooks: { async activate() {} },
    run() { this.$emit({ lengths: [this.token.length, this.demo.$auth.key.length], open: this.open }); },
  };`;

let system: System;
let api: Api;
let source: any;
const seen: string[] = [];

beforeAll(async () => {
  system = await joinSystem();
  api = await system.account();
  source = await api.source(CODE, {
    configured_props: { token: planted.prop, demo: { $auth: { key: planted.auth } }, open: 'visible', more: planted.notSecret },
  });
});
afterAll(() => system?.stop());

const lengthsOf = async (): Promise<unknown[]> =>
  (await api.get(`/sources/${source.id}/event_summaries`)).body.data.map(({ event }: any) => event.lengths);

describe('a source with secrets', () => {
  it('shows masks in every response', async () => {
    expect(source.configured_props).toMatchObject({ token: MASK, demo: { $auth: { key: MASK } }, more: planted.notSecret });
    const listed = (await api.get('/users/me/sources')).body.data[0];
    for (const { configured_props } of [(await api.get(`/sources/${source.id}`)).body.data, listed])
      expect(configured_props).toMatchObject({ token: MASK, demo: { $auth: { key: MASK } } });
  });

  it('runs with the secrets', async () => {
    await api.post(`/sources/${source.id}/run`, {});
    await eventually(async () => expect(await lengthsOf()).toEqual([[planted.prop.length, planted.auth.length]]));
  });

  it('keeps a value whose mask is sent back, and replaces one that is sent', async () => {
    const props = { token: MASK, demo: { $auth: { key: planted.changed } }, open: 'visible' };
    const response = await api.put(`/sources/${source.id}`, { component_id: source.component_id, configured_props: props });
    expect(response.status).toBe(200);
    await api.post(`/sources/${source.id}/run`, {});
    await eventually(async () => expect((await lengthsOf())[0]).toEqual([planted.prop.length, planted.changed.length]));
  });

  it('refuses a mask in a new source, naming the prop', async () => {
    const { status, body } = await api.post('/sources', { component_code: CODE, configured_props: { token: MASK, demo: {}, open: 'x' } });
    expect(status).toBe(400);
    expect(body.errors).toEqual([expect.objectContaining({ field: 'configured_props.token' })]);
  });
});

needing('processes', 'databases').describe('a dump of the databases and of Kafka', () => {
  it('contains none of the secrets, but the ids of their rows', async () => {
    const webhook = await api.webhook('http://localhost:1/');
    const first = (await api.get(`/webhooks/${webhook}/secret`)).body.data.secret;
    const key = { 'idempotency-key': 'rotation' };
    const second = (await api.send('POST', `/webhooks/${webhook}/secret/rotate`, undefined, key)).body.data.secret;
    const repeated = await api.send('POST', `/webhooks/${webhook}/secret/rotate`, undefined, key);
    expect(repeated.body.data.secret).toBe(second);
    for (const secret of [first, second]) expect(secret).toMatch(/^whsec_/);
    const issued = await keyAndConnection();
    seen.push(
      ...Object.values(planted),
      ...[first, second].map((secret: string) => secret.slice('whsec_'.length)),
      issued,
      api.account.api_key,
    );

    const dumps = [...(await databaseDumps()), ...(await topicDumps()), ...(await segmentDumps())];
    const where = (text: string) => dumps.filter(({ dump }) => dump.includes(text)).map(({ name }) => name);
    // what is looked for is found where it is in clear
    expect(where(source.id)).toEqual(
      expect.arrayContaining(['catalog', 'runtime', topic('catalog.emitter.changed'), topic('event-store.requests')]),
    );
    expect(where(webhook)).toEqual(expect.arrayContaining(['routing', topic('gateway.replies')]));
    for (const secret of seen) expect({ secret, where: where(secret) }).toEqual({ secret, where: [] });
  });
});

/** Uses a connection, with its credentials as they were created and changed, a repeated creation of a source, and a new API key, which it returns. */
async function keyAndConnection(): Promise<string> {
  const created = await api.post('/connections', { app: 'demo', credentials: { key: planted.connection } });
  const connection = created.body.data.id as string;
  expect((await api.send('PATCH', `/connections/${connection}`, { credentials: { key: planted.patched } })).status).toBe(200);
  const body = {
    component_code: CODE,
    configured_props: { token: planted.repeated, demo: { authProvisionId: connection }, open: 'visible' },
  };
  const [first, again] = [
    await api.send('POST', '/sources', body, { 'idempotency-key': 'source' }),
    await api.send('POST', '/sources', body, { 'idempotency-key': 'source' }),
  ];
  expect([again.status, again.body.data.id]).toEqual([200, first.body.data.id]);
  await api.post(`/sources/${first.body.data.id}/run`, {});
  await eventually(async () => {
    const { data } = (await api.get(`/sources/${first.body.data.id}/event_summaries`)).body;
    expect(data[0]?.event.lengths).toEqual([planted.repeated.length, planted.patched.length]);
  });
  const issue = () => api.send('POST', '/keys', { name: 'dumped' }, { 'idempotency-key': 'key' });
  const [key, sameKey] = [(await issue()).body.data.key, (await issue()).body.data.key];
  expect(sameKey).toBe(key);
  return key as string;
}

interface Dump {
  name: string;
  dump: string;
}

/** Every row of every table, as JSON. */
async function databaseDumps(): Promise<Dump[]> {
  return Promise.all(
    DATABASES.map(async (name) => {
      const url = new URL(process.env.SLUICE_TEST_DATABASE_URL ?? '');
      url.pathname = `/${name}`;
      const client = new pg.Client({ connectionString: url.toString() });
      await client.connect();
      try {
        const tables = await client.query<{ tablename: string }>("SELECT tablename FROM pg_tables WHERE schemaname = 'public'");
        const parts: string[] = [];
        for (const { tablename } of tables.rows) {
          const { rows } = await client.query(`SELECT * FROM "${tablename}"`);
          // binary columns as text: they hold JSON
          parts.push(
            ...rows.map((row) =>
              JSON.stringify(row, (_, value) => (value?.type === 'Buffer' ? Buffer.from(value.data).toString() : value)),
            ),
          );
        }
        return { name, dump: parts.join('\n') };
      } finally {
        await client.end();
      }
    }),
  );
}

/** Every record of every topic. */
async function topicDumps(): Promise<Dump[]> {
  const kafka = outsideKafka(system.brokers);
  const admin = kafka.admin();
  await admin.connect();
  const topics = (await admin.listTopics()).filter((name) => !name.startsWith('__'));
  const ends = new Map<string, number>();
  for (const name of topics)
    for (const { partition, low, high } of await admin.fetchTopicOffsets(name))
      if (Number(high) > Number(low)) ends.set(`${name} ${partition}`, Number(high));
  const consumer = kafka.consumer({ groupId: `dump-${Date.now()}` });
  await consumer.connect();
  await consumer.subscribe({ topics, fromBeginning: true });
  const parts = new Map<string, string[]>(topics.map((name) => [name, []]));
  await new Promise<void>((resolve, reject) => {
    consumer
      .run({
        autoCommit: false,
        eachBatch: async ({ batch }) => {
          for (const { key, value, headers } of batch.messages) {
            const texts = Object.values(headers ?? {}).map(String);
            parts.get(batch.topic)?.push(String(key), String(value), ...texts);
          }
          const place = `${batch.topic} ${batch.partition}`;
          if (Number(batch.lastOffset()) + 1 >= (ends.get(place) ?? 0)) ends.delete(place);
          if (ends.size === 0) resolve();
        },
      })
      .catch(reject);
  });
  await consumer.disconnect();
  await admin.disconnect();
  return [...parts].map(([name, texts]) => ({ name, dump: texts.join('\n') }));
}

/** The files of the broker as they are on the disk. */
async function segmentDumps(): Promise<Dump[]> {
  if (isSecured || !process.env.SLUICE_TEST_STACK_FOLDER) return [];
  const data = join(process.env.SLUICE_TEST_STACK_FOLDER, 'broker', 'data');
  const files = (await readdir(data, { recursive: true })).filter((file) => file.endsWith('.log'));
  expect(files.length).toBeGreaterThan(10);
  return Promise.all(files.map(async (file) => ({ name: file, dump: (await readFile(join(data, file))).toString('latin1') })));
}
