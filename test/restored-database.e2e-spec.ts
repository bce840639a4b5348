import { afterAll, beforeAll, expect } from '@jest/globals';
import pg from 'pg';
import type { Api } from './support/api.js';
import { eventually } from './support/eventually.js';
import { outsideProducer } from './support/producer.js';
import { Receiver } from './support/receiver.js';
import { startSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

const EVENTS = 40;

let system: System;
let receiver: Receiver;
let api: Api;

beforeAll(async () => {
  [system, receiver] = await Promise.all([startSystem(), Receiver.start()]);
  api = await system.account();
});
afterAll(async () => {
  await Promise.all([system?.stop(), receiver?.close()]);
});

/** Runs an operator's statements in a database; by default, they concern the server. Returns the rows of the last one. */
async function inDatabase(database: string | undefined, ...statements: string[]): Promise<unknown[]> {
  const url = new URL(process.env.SLUICE_TEST_DATABASE_URL ?? '');
  if (database !== undefined) url.pathname = database;
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  let rows: unknown[] = [];
  try {
    for (const statement of statements) ({ rows } = await client.query<object>(statement));
  } finally {
    await client.end();
  }
  return rows;
}

const onServer = (...statements: string[]) => inDatabase(undefined, ...statements);
const logged = async (app: 'routing' | 'catalog' | 'runtime', message: string) =>
  (await system.apps.logs(app)).filter((line) => line.includes(`"${message}"`));

needing('processes', 'databases', 'control', 'receiver').it(
  "delivers what was waiting for a retry when routing's database is restored from an older backup",
  async () => {
    const source = (await api.source("export default { name: 'silent' }")).id as string;
    const webhook = await api.webhook(receiver.url);
    await api.subscribe(source, webhook);
    const producer = await outsideProducer(system.brokers);
    const emit = (from: number, to: number) =>
      producer.emit(
        source,
        Array.from({ length: to - from }, (_, index) => ({ n: from + index })),
      );
    const numbers = () => new Set(receiver.received.map(({ body }) => body.n as number)).size;
    await emit(0, EVENTS);
    await eventually(() => expect(numbers()).toBe(EVENTS));

    await system.apps.stop('routing');
    await onServer('DROP DATABASE IF EXISTS routing_backup', 'CREATE DATABASE routing_backup TEMPLATE routing');
    await system.apps.start('routing');
    receiver.respondWith = () => 503;
    await emit(EVENTS, 2 * EVENTS);
    // each of them has failed once or waits behind one that failed
    await eventually(async () => {
      const { body } = await api.get(`/webhooks/${webhook}/deliveries?limit=100`);
      expect((body.data as { status: string }[]).filter(({ status }) => status === 'pending')).toHaveLength(EVENTS);
    });
    await system.apps.stop('routing');
    await onServer('DROP DATABASE routing WITH (FORCE)', 'ALTER DATABASE routing_backup RENAME TO routing');
    receiver.respondWith = () => 200;
    const failed = receiver.received.length;
    await system.apps.start('routing');

    const later = () => new Set(receiver.received.slice(failed).map(({ body }) => body.n as number));
    await eventually(() => expect([...later()].filter((n) => n >= EVENTS)).toHaveLength(EVENTS));
    expect(await logged('routing', 'database.restored')).not.toHaveLength(0);
    await producer.close();
  },
);

needing('processes', 'databases', 'control').it(
  "runs what the REST API shows when the catalog's database is restored from an older backup",
  async () => {
    const code = (text: string) =>
      `export default { name: 'says', props: { http: '$.interface.http' }, run() { this.$emit(${JSON.stringify(text)}); } }`;
    const { id, configured_props } = await api.source(code('before'));
    const emitted = async () => {
      await fetch(configured_props.http.endpoint_url as string, { method: 'POST', body: '{}' });
      const { body } = await api.get(`/sources/${id}/event_summaries?limit=1&expand=event`);
      return (body.data as { event: string }[])[0]?.event;
    };
    await eventually(async () => expect(await emitted()).toBe('before'));

    await system.apps.stop('catalog');
    await onServer('DROP DATABASE IF EXISTS catalog_backup', 'CREATE DATABASE catalog_backup TEMPLATE catalog');
    await system.apps.start('catalog');
    for (const text of ['later', 'still later', 'last']) await api.put(`/sources/${id}`, { component_code: code(text) });
    await eventually(async () => expect(await emitted()).toBe('last'));

    await system.apps.stop('catalog');
    await onServer('DROP DATABASE catalog WITH (FORCE)', 'ALTER DATABASE catalog_backup RENAME TO catalog');
    await system.apps.start('catalog');
    await eventually(async () => expect(await emitted()).toBe('before'));
    // a change after the restore takes effect, although the other services have seen many before
    await api.put(`/sources/${id}`, { component_code: code('again') });
    await eventually(async () => expect(await emitted()).toBe('again'));
  },
);

needing('processes', 'databases', 'control').it(
  "restores the state and delayed emits of a component that responds itself when the runtime's database is restored from an older backup",
  async () => {
    const { configured_props } = await api.source(`export default {
      name: 'responds', props: { http: { type: '$.interface.http', customResponse: true }, db: '$.service.db' },
      run() {
        const n = (this.db.get('n') ?? 0) + 1;
        this.db.set('n', n);
        this.$emit({ n }, { id: n, delivery_ts: Date.now() + 3_600_000 });
        this.http.respond({ status: 200, body: { n } });
      },
    }`);
    const count = async () => {
      const response = await fetch(configured_props.http.endpoint_url as string, { method: 'POST', body: '{}' });
      return ((await response.json()) as { n?: number }).n;
    };
    const waiting = () => inDatabase('runtime', "SELECT convert_from(value, 'UTF8')::json->'n' AS n FROM waiting_emit ORDER BY due_at");
    expect(await count()).toBe(1);
    await eventually(async () => expect(await waiting()).toEqual([{ n: 1 }]));

    await system.apps.stop('runtime');
    await onServer('DROP DATABASE IF EXISTS runtime_backup', 'CREATE DATABASE runtime_backup TEMPLATE runtime');
    await system.apps.start('runtime');
    expect([await count(), await count()]).toEqual([2, 3]);
    await eventually(async () => expect(await waiting()).toHaveLength(3));

    await system.apps.stop('runtime');
    await onServer('DROP DATABASE runtime WITH (FORCE)', 'ALTER DATABASE runtime_backup RENAME TO runtime');
    await system.apps.start('runtime');
    await eventually(async () => expect(await logged('runtime', 'run.restored')).toHaveLength(2));
    expect(await waiting()).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    expect(await count()).toBe(4);
  },
);

needing('processes', 'databases', 'control', 'receiver').it(
  'returns to the sources of the backup when all databases are restored',
  async () => {
    const apps = ['gateway', 'catalog', 'routing', 'runtime', 'event-store'] as const;
    const all = (work: (app: (typeof apps)[number]) => Promise<void>) => Promise.all(apps.map(work));
    const database = (app: string) => app.replace('-', '_');
    const code = `export default {
      name: 'counts', props: { http: '$.interface.http', db: '$.service.db' },
      run() { const n = (this.db.get('n') ?? 0) + 1; this.db.set('n', n); this.$emit({ source: this.http.endpoint, n }); },
    }`;
    const create = async () => {
      const { id, configured_props } = await api.source(code);
      const url = configured_props.http.endpoint_url as string;
      return { id: id as string, call: async () => (await fetch(url, { method: 'POST', body: '{}' })).status };
    };
    const [deleted, off] = [await create(), await create()];
    const webhook = await api.webhook(receiver.url);
    for (const { id } of [deleted, off]) await api.subscribe(id, webhook);
    const arrived = (from = 0) => receiver.received.slice(from).map(({ headers, body }) => [headers['ce-source'], body.n as number]);
    for (const { call } of [deleted, off]) expect(await call()).toBe(200);
    await eventually(() => expect(arrived()).toEqual(expect.arrayContaining([deleted, off].map(({ id }) => [id, 1]))));

    await all((app) => system.apps.stop(app));
    for (const app of apps)
      await onServer(
        `DROP DATABASE IF EXISTS ${database(app)}_backup`,
        `CREATE DATABASE ${database(app)}_backup TEMPLATE ${database(app)}`,
      );
    await all((app) => system.apps.start(app));
    expect((await api.delete(`/sources/${deleted.id}`)).status).toBe(204);
    await api.put(`/sources/${off.id}`, { component_code: code, active: false });
    const orphan = await create();
    expect([await deleted.call(), await off.call(), await orphan.call()]).toEqual([404, 404, 200]);

    await all((app) => system.apps.stop(app));
    for (const app of apps)
      await onServer(`DROP DATABASE ${database(app)} WITH (FORCE)`, `ALTER DATABASE ${database(app)}_backup RENAME TO ${database(app)}`);
    const before = receiver.received.length;
    await all((app) => system.apps.start(app));
    await eventually(async () => expect(await logged('catalog', 'emitters.reconciled')).not.toHaveLength(0));
    await eventually(async () => expect(await orphan.call()).toBe(404));
    expect((await api.get(`/sources/${orphan.id}`)).status).toBe(404);
    // with its state, its subscription and its events
    for (const { id, call } of [deleted, off]) {
      await eventually(async () => expect(await call()).toBe(200));
      await eventually(() => expect(arrived(before)).toContainEqual([id, 2]));
      const { body } = await api.get(`/sources/${id}/event_summaries?expand=event`);
      expect((body.data as { event: { n: number } }[]).map(({ event }) => event.n)).toContain(1);
    }
  },
);
