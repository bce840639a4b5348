import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  type ComponentDescription,
  type ComponentId,
  type ConnectionId,
  type EmitterState,
  idFrom,
  newId,
  type SourceId,
  type UserId,
} from '#contracts';
import { OutboxRecord } from '#outbox';
import type { Transaction } from '#database';
import { type FreshDatabase, freshDatabase, untilLocked } from '#testing';
import { Code, ComponentRow } from '../components/component.entity.js';
import { ComponentsRepository } from '../components/components.repository.js';
import { schema } from '../database/schema.js';
import { AccountTurns } from './account-turns.js';
import type { SourceChange } from './source.entity.js';
import { SourceRow } from './source.entity.js';
import { ConnectionRow } from './connection.entity.js';
import { ConnectionsRepository } from './connections.repository.js';
import { SourceStatesRepository } from './source-states.repository.js';
import { CREATED_AT_MS, SourcesRepository } from './sources.repository.js';

const description: ComponentDescription = {
  name: 'Feed',
  key: 'feed',
  version: '1.0.0',
  description: null,
  dedupe: null,
  concurrency: 1,
  hooks: ['deploy'],
  has_run: true,
  configurable_props: [
    { name: 'z', type: 'string' },
    { name: 'a', type: 'string', default: { deep: [1] }, secret: true },
  ],
};

describe('the sources', () => {
  let db: FreshDatabase;
  let sources: SourcesRepository;
  let sourceStates: SourceStatesRepository;
  let connections: ConnectionsRepository;
  let components: ComponentsRepository;
  let component: ComponentId;
  let owner: UserId;

  beforeAll(async () => {
    db = await freshDatabase(schema);
    sources = new SourcesRepository(
      db.database,
      db.database.rows(SourceRow),
      (connections = new ConnectionsRepository(db.database, db.database.rows(ConnectionRow))),
      (components = new ComponentsRepository(db.database, db.database.rows(ComponentRow), db.database.rows(Code))),
      new AccountTurns(),
    );
    sourceStates = new SourceStatesRepository(db.database, db.database.rows(SourceRow), components);
  });
  afterAll(() => db.drop());
  beforeEach(async () => {
    owner = newId('user');
    component = await addComponent('a'.repeat(64));
    await db.database.query('TRUNCATE outbox');
  });

  async function addComponent(hash: string, described = description): Promise<ComponentId> {
    const id = newId('component');
    await components.add(db.database, {
      id,
      owner_id: owner,
      code: { hash, code: 'export default {}', description: described, bundle: null },
      component_url: null,
    });
    return id;
  }

  const change = (more: Partial<SourceChange> = {}): SourceChange => ({
    component_id: component,
    name: 'My feed',
    slug: 'my-feed',
    external_id: null,
    configured_props: { z: 'last', a: 'first' },
    schedules: {},
    active: true,
    endpoint_key: null,
    ...more,
  });
  const create = (more: Partial<SourceChange> = {}, id: SourceId = newId('source')) => sources.create(owner, id, change(more));
  const connect = async (credentials: string): Promise<ConnectionId> => {
    const id = newId('connection');
    await db.database.rows(ConnectionRow).insert({ id, owner_id: owner, app: 'app', name: 'c', credentials });
    return id;
  };
  /** Runs `first` in a transaction that commits as soon as `second` waits for it. */
  const overlapping = async (first: (transaction: Transaction) => Promise<unknown>, second: () => Promise<unknown>): Promise<void> => {
    let work: Promise<unknown> = Promise.resolve();
    await db.database.transaction(async (transaction) => {
      await first(transaction);
      work = second();
      await untilLocked(db);
    });
    await work;
  };
  const facts = async () =>
    (await db.database.rows(OutboxRecord).find({ order: { id: 'ASC' } })).map(({ key, value }) => ({
      key,
      ...(JSON.parse(value?.toString() ?? '{}') as {
        version: number;
        active: boolean;
        deleted: boolean;
        deployment: { code_hash: string };
      }),
    }));

  it('are refused beyond the limit of their account, also if they are created at the same time, but each can be repeated', async () => {
    const connection = await connect('sealed');
    const createOne = (n: number, id = newId('source')) =>
      sources.create(owner, id, change({ slug: `s${n % 5}`, uses: n % 2 === 0 ? [] : [connection] }), 2);
    const made = (await Promise.allSettled(Array.from({ length: 20 }, (_, n) => createOne(n)))).flatMap((each) =>
      each.status === 'fulfilled' ? [each.value] : [],
    );
    expect(made).toHaveLength(2);
    expect((await facts()).map(({ key }) => key).sort()).toEqual(made.map(({ id }) => id).sort());
    const message = 'this account has 2 sources; the limit is 2';
    await expect(createOne(0)).rejects.toMatchObject({ code: 'conflict', message });
    await expect(sources.requireFewer(owner, newId('source'), 2)).rejects.toMatchObject({ code: 'conflict', message });
    await sources.requireFewer(owner, made[0]!.id, 2);
    await sources.requireFewer(newId('user'), newId('source'), 2);
    expect(await createOne(0, made[0]!.id)).toMatchObject({ version: made[0]!.version });
  });

  it('are read as they were created, with their component but without its code', async () => {
    const created = await create();
    const found = await sources.find(owner, created.id);
    expect(found).toMatchObject({ ...created, component: expect.anything() });
    expect(found?.component).toMatchObject({ code_hash: 'a'.repeat(64), inspected: { description } });
    expect(created.component).toMatchObject({ code_hash: 'a'.repeat(64), inspected: { description } });
    expect(Object.keys(found?.configured_props ?? {})).toEqual(['z', 'a']);
    expect(found?.component.inspected).not.toHaveProperty('code');
  });

  it('are suspended with their account, some at a time, and continue as they were', async () => {
    const [first, second] = [await create({ slug: 'a' }), await create({ slug: 'b' })];
    const off = await create({ slug: 'c', active: false });
    const shown = (states: EmitterState[]) => states.map(({ emitter_id, active, suspended }) => [emitter_id, active, suspended]).sort();
    const suspended = [await sources.suspend(owner, true, 2), await sources.suspend(owner, true, 2), await sources.suspend(owner, true, 2)];
    expect(shown(suspended.flat())).toEqual(
      [
        [first.id, false, true],
        [second.id, false, true],
        [off.id, false, undefined],
      ].sort(),
    );
    expect(suspended.map(({ length }) => length)).toEqual([2, 1, 0]);
    expect((await sources.find(owner, first.id))?.active).toBe(true);
    const before = await facts();
    // a request that was in progress
    await expect(sources.update(owner, first.id, () => change({ slug: 'a', name: 'New' }))).rejects.toMatchObject({
      code: 'unavailable',
      message: 'this account is suspended',
    });
    expect(await sources.update(owner, first.id, () => null)).toMatchObject({ active: true, suspended: true });
    expect(await facts()).toEqual(before);
    const resumed = await sources.suspend(owner, false, 10);
    expect(shown(resumed)).toEqual(
      [
        [first.id, true, undefined],
        [second.id, true, undefined],
        [off.id, false, undefined],
      ].sort(),
    );
    expect(await sources.suspend(newId('user'), true, 10)).toEqual([]);
  });

  it('are not created if their account was suspended meanwhile; a repeated command returns the one that it has created before', async () => {
    const connection = await connect('sealed');
    const { id, version } = await create({ slug: 'taken' });
    await sources.suspend(owner, true, 10);
    const before = await facts();
    for (const [more, most] of [[{}], [{ slug: 'taken' }], [{ uses: [connection] }], [{}, 5]] as const) {
      const creating = sources.create(owner, newId('source'), change({ slug: 'new', ...more, uses: [...(more.uses ?? [])] }), most);
      await expect(creating).rejects.toMatchObject({ code: 'unavailable', message: 'this account is suspended' });
    }
    expect(await facts()).toEqual(before);
    expect(await create({ slug: 'taken' }, id)).toMatchObject({ id, suspended: true });
    expect(await sources.create(newId('user'), newId('source'), change())).toMatchObject({ suspended: false });
    await sources.suspend(owner, false, 10);
    expect((await create({ slug: 'new' })).version).toBeGreaterThan(version);
  });

  it('are listed by their ids, the oldest first', async () => {
    const [first, second] = [await create({ slug: 'a' }), await create({ slug: 'b' })];
    expect(await sources.ids(owner, 10)).toEqual([{ id: first.id }, { id: second.id }]);
    expect(await sources.ids(owner, 1)).toEqual([{ id: first.id }]);
    expect(await sources.ids(newId('user'), 10)).toEqual([]);
  });

  it('leave no secrets in the fact of their deletion', async () => {
    const { id } = await create({ configured_props: { z: 'planted' } });
    await sources.delete(owner, id);
    expect(JSON.stringify((await facts())[0])).toContain('planted');
    expect(JSON.stringify((await facts()).at(-1))).not.toContain('planted');
  });

  it('are published again over newer states that the database has lost, and as deleted if they do not exist', async () => {
    const [changed, same] = [await create({ slug: 'a' }), await create({ slug: 'b' })];
    const states = await sourceStates.states([changed.id, same.id]);
    const state = (id: SourceId) => states.find(({ emitter_id }) => emitter_id === id)!;
    const later = (more: Partial<EmitterState>) => ({ ...state(changed.id), ...more });
    await db.database.query('TRUNCATE outbox');
    const [orphan, deleted] = [newId('source'), newId('source')];
    const version = changed.version + 1_000_000;
    const known = [
      later({ active: false, version }),
      state(same.id),
      later({ emitter_id: orphan, version }),
      later({ emitter_id: deleted, version, deleted: true }),
    ];
    expect(await sources.overrule(known)).toEqual({ published: 2, deleted: 1 });
    expect(await facts()).toMatchObject([
      { key: changed.id, active: true, deleted: false, version: version + 1 },
      { key: orphan, active: false, deleted: true, version: version + 1 },
    ]);
    expect(await sources.versions([changed.id, same.id, orphan])).toEqual(
      new Map([
        [changed.id, version + 1],
        [same.id, same.version],
      ]),
    );
    // the topic has the published states now
    expect(await sources.overrule(known.filter(({ emitter_id }) => emitter_id !== orphan))).toEqual({ published: 0, deleted: 0 });
    // a later change is newer still
    expect((await sources.update(owner, changed.id, () => change({ slug: 'a' })))?.version).toBeGreaterThan(version + 1);
  });

  it('do not exist for another account', async () => {
    const { id, version } = await create();
    const otherAccount = newId('user');
    expect(await sources.find(otherAccount, id)).toBeUndefined();
    expect(await sources.update(otherAccount, id, () => change())).toBeUndefined();
    expect(await sources.switchOff(otherAccount, id, version)).toBeUndefined();
    expect(await sources.delete(otherAccount, id)).toBeUndefined();
    expect(await sources.list(otherAccount, { limit: 10 })).toEqual({ rows: [], total: 0, cut: false });
  });

  it('are created once however often the command arrives, with one fact', async () => {
    const id = newId('source');
    const first = await create({}, id);
    expect(await create({ name: 'Another' }, id)).toMatchObject({ name: first.name, version: first.version });
    expect(await facts()).toMatchObject([{ key: id, version: first.version, active: true }]);
  });

  it('are published as other services find them, whichever statement has written them', async () => {
    const more = { schedules: { t: { interval_seconds: 60, cron: null } }, name: 'Ä "}{"', endpoint_key: `key-${owner}` };
    const [{ id }, beside, off] = [await create(more), await create(), await create({ active: false, slug: 'off' })];
    const found = await sourceStates.states([id, beside.id, off.id]);
    for (const each of found) {
      const { deployment: _, ...bare } = each;
      expect(await sourceStates.bareStates([each.emitter_id])).toEqual([bare]);
    }
    expect(await facts()).toEqual([id, beside.id, off.id].map((key) => ({ key, ...found.find(({ emitter_id }) => emitter_id === key) })));
  });

  it('have the time of their creation in all facts, to the millisecond', async () => {
    const { id, created_at } = await create();
    for (const micros of [0, 1, 999, 1000, 57_000, 57_999, 128_999, 999_000, 999_999]) {
      await db.database.query(
        "UPDATE source SET created_at = date_trunc('second', created_at) + $2 * interval '1 microsecond' WHERE id = $1",
        [id, micros],
      );
      const { rows } = await db.database.query<{ ms: number }>(`SELECT ${CREATED_AT_MS}::float8 AS ms FROM source WHERE id = $1`, [id]);
      expect(rows[0]?.ms).toBe((await sources.find(owner, id))?.created_at.getTime());
    }
    expect((await facts())[0]).toMatchObject({ created_at_ms: created_at.getTime() });
  });

  it('are not created of a component that has been deleted meanwhile, nor changed to it', async () => {
    const { id } = await create();
    const account = owner;
    owner = newId('user');
    const gone = await addComponent('b'.repeat(64));
    for (const write of [
      () => sources.create(account, newId('source'), change({ component_id: gone, slug: 'x' })),
      () => sources.update(account, id, () => change({ component_id: gone })),
    ]) {
      await components.describe(db.database, gone);
      await db.database.rows(ComponentRow).delete({ id: gone });
      await expect(write()).rejects.toMatchObject({ code: 'not_found', message: expect.stringContaining(gone) });
      expect(await components.describe(db.database, gone)).toBeUndefined();
      await db.database.rows(ComponentRow).insert({ id: gone, owner_id: owner, name: 'Feed', code_hash: 'b'.repeat(64) });
    }
    expect(await facts()).toHaveLength(1);
  });

  it('wake the relay that sends their facts when they are created', async () => {
    const client = await db.database.connect();
    try {
      const woken = once(client, 'notification');
      await client.query('LISTEN outbox');
      await create();
      expect(await woken).toMatchObject([{ channel: 'outbox' }]);
    } finally {
      client.release(true);
    }
  });

  it('get unique slugs, also if they are created or renamed at the same time', async () => {
    const made = await Promise.all([1, 2, 3, 4].map(() => create()));
    expect(made.map(({ name_slug }) => name_slug).sort()).toEqual(['my-feed', 'my-feed-1', 'my-feed-2', 'my-feed-3']);
    const renamed = await Promise.all([
      ...made.map(({ id }) => sources.update(owner, id, () => change({ slug: 'renamed' }))),
      create({ slug: 'renamed' }),
    ]);
    expect(renamed.map((row) => row?.name_slug).sort()).toEqual(['renamed', 'renamed-1', 'renamed-2', 'renamed-3', 'renamed-4']);
  });

  it('keep their endpoint key when they change, and their fact carries the new version and code', async () => {
    const { id, version } = await create({ endpoint_key: `key-${owner}` });
    const other = await addComponent('b'.repeat(64));
    const updated = await sources.update(owner, id, (before) => {
      expect(before.version).toBe(version);
      return change({ component_id: other, name: 'New', slug: 'new', endpoint_key: 'another', active: false });
    });
    expect(updated).toMatchObject({ name: 'New', name_slug: 'new', endpoint_key: `key-${owner}`, active: false });
    expect(updated?.version).toBeGreaterThan(version);
    expect((await facts()).at(-1)).toMatchObject({ version: updated?.version, active: false, deployment: { code_hash: 'b'.repeat(64) } });
    expect(await sourceStates.statesByEndpoint([`key-${owner}`, 'unknown'])).toMatchObject([{ emitter_id: id, version: updated?.version }]);
  });

  it('begin to use a connection that they did not use before, and cease to', async () => {
    const { id } = await create();
    const connection = await connect('sealed');
    expect(await sources.update(owner, id, () => change({ uses: [connection] }))).toMatchObject({
      credentials: { [connection]: 'sealed' },
    });
    expect((await facts()).at(-1)).toMatchObject({ deployment: { credentials: { [connection]: 'sealed' } } });
    expect(await sources.update(owner, id, () => change({ uses: [connection], name: 'Held' }), true)).toMatchObject({ name: 'Held' });
    expect(await sources.update(owner, id, () => change())).toMatchObject({ credentials: null });
    expect((await facts()).at(-1)?.deployment).not.toHaveProperty('credentials');
    expect(await facts()).toHaveLength(4);
  });

  it('have the new credentials of a connection that changes while all sources are published again', async () => {
    const connection = await connect('old');
    const { id } = await create({ uses: [connection] });
    await overlapping(
      async (transaction) => {
        await connections.lock(transaction, owner);
        await connections.update(transaction, owner, connection, ({ name }) => ({ name, credentials: 'new' }));
        await sources.setCredentials(transaction, owner, connection, 'new');
      },
      () => sources.republish(),
    );
    expect(await sources.find(owner, id)).toMatchObject({ credentials: { [connection]: 'new' } });
    expect((await facts()).findLast(({ key }) => key === id)).toMatchObject({ deployment: { credentials: { [connection]: 'new' } } });
  });

  it('have credentials under the new key, if they are created while the keys are rotated', async () => {
    await db.database.query('DELETE FROM source');
    const connection = await connect('under the old key');
    let work: Promise<unknown> = Promise.resolve();
    const id = newId('source');
    await db.database.transaction(async (transaction) => {
      // the new source waits here, after it has copied the credentials
      await transaction.query('LOCK TABLE outbox IN SHARE MODE');
      const created = create({ uses: [connection] }, id);
      await untilLocked(db);
      const rotate = async () => {
        await db.database.query("UPDATE connection SET credentials = 'under the new key' WHERE id = $1", [connection]);
        return sources.republish();
      };
      const rotated = rotate();
      work = Promise.all([created, rotated]);
      await Promise.race([rotated, untilLocked(db, 2)]);
    });
    await work;
    expect(await sources.find(owner, id)).toMatchObject({ credentials: { [connection]: 'under the new key' } });
  });

  it('get the new credentials of their connection, however many they are, unless one of them would have too many bytes', async () => {
    const [connection, other] = [await connect('old'), await connect('x'.repeat(200_000))];
    const ids: SourceId[] = [];
    for (let n = 0; n < 60; n++) ids.push((await create({ uses: [connection] })).id);
    const set = (credentials: string) =>
      db.database.transaction((transaction) => sources.setCredentials(transaction, owner, connection, credentials));
    expect(await set('new')).toEqual(ids.sort());
    let states = 0;
    for await (const part of sourceStates.statesInParts(ids)) {
      for (const { deployment } of part) expect(deployment?.credentials).toEqual({ [connection]: 'new' });
      states += part.length;
    }
    expect(states).toBe(60);
    const both = await create({ uses: [connection, other] });
    await expect(set('y'.repeat(70_000))).rejects.toThrow(
      `credentials are too large: the source ${both.id} would use 270000 bytes of encrypted credentials; the limit is 262144`,
    );
    expect(await sources.find(owner, ids[0]!)).toMatchObject({ credentials: { [connection]: 'new' } });
  });

  it('are listed with the credentials of their inline connections alone', async () => {
    const connection = await connect('shared');
    const inline = newId('connection');
    await create({ uses: [connection, inline], inline: [{ id: inline, app: 'chat', name: 'chat', credentials: 'inline' }] });
    await create({ uses: [connection] });
    const { rows } = await sources.list(owner, { limit: 10 });
    expect(rows.map(({ credentials }) => credentials)).toEqual(expect.arrayContaining([{ [inline]: 'inline' }, null]));
  });

  it('are listed although an earlier version stored texts that PostgreSQL cannot read', async () => {
    const props = (text: string) => [{ name: 'a', type: 'string', secret: true, label: text }];
    const ids: SourceId[] = [];
    for (const [n, text] of ['\0', '\ud800', 'readable'].entries()) {
      component = await addComponent(`${n}`.repeat(64), { ...description, dedupe: 'last', configurable_props: props(text) });
      ids.push((await create({ slug: `s${n}`, endpoint_key: newId('source') })).id);
    }
    const { rows } = await sources.list(owner, { limit: 10 });
    const shown = rows.map(({ component: { inspected } }) => inspected.description);
    expect(shown).toMatchObject(Array(3).fill({ hooks: ['deploy'], dedupe: 'last', configurable_props: [{ name: 'a', secret: true }] }));
    expect((await sourceStates.states(ids)).map(({ deployment }) => deployment?.hooks)).toEqual(Array(3).fill(['deploy']));
  });

  it('never take over a shared connection, or one of another source', async () => {
    const [shared, others] = [await connect('shared'), newId('connection')];
    const inlineAs = (id: ConnectionId, credentials: string) => ({ uses: [id], inline: [{ id, app: 'chat', name: 'chat', credentials }] });
    await create(inlineAs(others, 'others'));
    for (const [id, credentials] of [
      [shared, 'shared'],
      [others, 'others'],
    ] as const) {
      await expect(create(inlineAs(id, 'taken'))).rejects.toThrow('a connection is not of the source');
      expect(await connections.find(owner, id)).toMatchObject({ credentials });
    }
  });

  it('are deleted while their inline connection changes', async () => {
    const inline = newId('connection');
    const { id } = await create({ uses: [inline], inline: [{ id: inline, app: 'chat', name: 'chat', credentials: 'old' }] });
    let deleting: Promise<unknown> | undefined;
    await db.database.transaction(async (transaction) => {
      await connections.lock(transaction, owner);
      await connections.update(transaction, owner, inline, ({ name }) => ({ name, credentials: 'new' }));
      deleting = sources.delete(owner, id);
      await untilLocked(db);
      await sources.setCredentials(transaction, owner, inline, 'new');
    });
    await deleting;
    expect([await sources.find(owner, id), await connections.find(owner, inline)]).toEqual([undefined, undefined]);
  });

  it('are deleted with few connections to the database at a time while the connections of their account are locked', async () => {
    const ids: SourceId[] = [];
    for (let n = 0; n < 8; n++) ids.push((await create()).id);
    let deleting: Promise<unknown>[] = [];
    await db.database.transaction(async (transaction) => {
      await connections.lock(transaction, owner);
      expect((await transaction.query<{ lock_timeout: string }>('SHOW lock_timeout')).rows).toEqual([{ lock_timeout: '5s' }]);
      deleting = ids.map((id) => sources.delete(owner, id));
      await untilLocked(db);
      const { totalCount, idleCount } = db.database.pool;
      expect(totalCount - idleCount).toBeLessThanOrEqual(3);
    });
    for (const deleted of await Promise.all(deleting)) expect(deleted).toMatchObject({ state: { deleted: true } });
  });

  it('keep the credentials of a connection under the new key if it is renamed during a rotation', async () => {
    const connection = await connect('under the old key');
    await overlapping(
      (rotation) => rotation.query('UPDATE connection SET credentials = $2 WHERE id = $1', [connection, 'under the new key']),
      () =>
        db.database.transaction((transaction) =>
          connections.update(transaction, owner, connection, ({ credentials }) => ({ name: 'renamed', credentials })),
        ),
    );
    expect(await connections.find(owner, connection)).toMatchObject({ name: 'renamed', credentials: 'under the new key' });
  });

  it('are updated one after the other when two updates change the component', async () => {
    const { id } = await create();
    const other = await addComponent('b'.repeat(64));
    const updates = [component, other, component, other].map((component_id) => sources.update(owner, id, () => change({ component_id })));
    expect(new Set((await Promise.all(updates)).map((row) => row?.version)).size).toBe(4);
  });

  it('get a higher version than before, also if the clock goes back or a backup is restored', async () => {
    const { id, version } = await create();
    expect(Math.abs(version - Date.now())).toBeLessThan(60_000);
    const setVersion = (value: number) => db.database.rows(SourceRow).update({ id }, { version: value });
    const changed = async () => (await sources.update(owner, id, () => change({ name: 'Changed' })))?.version;
    // a state of a day ago, below what the other services know
    await setVersion(version - 86_400_000);
    expect(await changed()).toBeGreaterThan(version);
    const future = version + 86_400_000;
    await setVersion(future);
    expect(await changed()).toBe(future + 1);
    expect((await sources.delete(owner, id))?.state).toMatchObject({ version: future + 2 });
  });

  it('change nothing when the decision throws', async () => {
    const { id, version } = await create();
    const failing = sources.update(owner, id, () => {
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await sources.find(owner, id)).toMatchObject({ version });
    expect(await facts()).toHaveLength(1);
  });

  it('are switched off only once: a second call changes nothing and writes no fact', async () => {
    const { id, version } = await create();
    expect(await sources.switchOff(owner, id, version)).toMatchObject({ active: false });
    for (const again of [version, version + 1]) expect(await sources.switchOff(owner, id, again)).toBeUndefined();
    expect(await facts()).toHaveLength(2);
  });

  it('are not switched off in a version that their owner has changed meanwhile', async () => {
    const { id, version } = await create();
    await sources.update(owner, id, () => change({ slug: 'b' }));
    expect(await sources.switchOff(owner, id, version)).toBeUndefined();
    expect(await sources.find(owner, id)).toMatchObject({ active: true });
  });

  it('count as new for thirty seconds after they were created, also under an older id', async () => {
    const [older, newer] = [await create(), await create()];
    await db.database.query("UPDATE source SET created_at = now() - interval '31 seconds' WHERE id = $1", [older.id]);
    // the id of a repeated request has the time of the first one
    const repeated = idFrom('source', Date.now() - 23 * 3_600_000, randomBytes(7));
    await create({}, repeated);
    expect((await sourceStates.newIds(owner)).sort()).toEqual([newer.id, repeated].sort());
    expect(await sourceStates.newIds(newId('user'))).toEqual([]);
  });

  it('leave a last fact when they are deleted', async () => {
    const { id } = await create();
    expect((await sources.delete(owner, id))?.state).toMatchObject({ deleted: true, active: false });
    expect(await sources.delete(owner, id)).toBeUndefined();
    expect((await facts()).at(-1)).toMatchObject({ key: id, deleted: true });
    expect(await sourceStates.states([id])).toEqual([]);
  });

  it('are not created again by a repeated command after they were deleted', async () => {
    const connection = await connect('sealed');
    const of = async (most?: number, more: Partial<SourceChange> = {}) => {
      const id = newId('source');
      const repeated = () => sources.create(owner, id, change({ slug: id, ...more }), most);
      await repeated();
      await sources.delete(owner, id);
      return { id, repeated };
    };
    await create({ slug: 'taken' });
    const deleted = [await of(), await of(10), await of(10, { uses: [connection] }), await of(undefined, { slug: 'taken' })];
    const before = await facts();
    for (const { id, repeated } of deleted)
      await expect(repeated()).rejects.toMatchObject({ code: 'conflict', message: `the source ${id} has been deleted` });
    expect(await facts()).toEqual(before);
    expect(await sourceStates.states(deleted.map(({ id }) => id))).toEqual([]);
  });

  it('are not created again by a repeated command while they are being deleted', async () => {
    const { id } = await create();
    const { promise: deleted, resolve: commit } = Promise.withResolvers<void>();
    const { promise: locked, resolve: lock } = Promise.withResolvers<void>();
    const deletion = db.database.transaction(async (transaction) => {
      await transaction.query('DELETE FROM source WHERE id = $1', [id]);
      await transaction.query("INSERT INTO deleted_source (id, state) VALUES ($1, '{}')", [id]);
      lock();
      await deleted;
    });
    await locked;
    // it sees the source, and does not wait
    expect(await create({}, id)).toMatchObject({ id });
    commit();
    await deletion;
    expect(await sourceStates.states([id])).toEqual([]);
  });

  it('are known as deleted until Kafka has no events of them any more, without their names', async () => {
    const [{ id, created_at }, { id: old }, existing] = [await create(), await create(), await create()];
    for (const each of [old, id]) await sources.delete(owner, each);
    const state = {
      emitter_id: id,
      owner_id: owner,
      kind: 'source',
      deleted: true,
      active: false,
      name: '',
      created_at_ms: created_at.getTime(),
    };
    const ids = [id, existing.id, newId('source')];
    expect(await sourceStates.deletedStates(ids)).toEqual([{ ...state, version: (await facts()).at(-1)!.version }]);

    await db.database.query("UPDATE deleted_source SET deleted_at = deleted_at - interval '9 days' WHERE id = $1", [old]);
    expect(await sourceStates.deletedStates([old])).toHaveLength(1);
    await sources.delete(owner, existing.id);
    expect(await sourceStates.deletedStates([old])).toEqual([]);
    expect(await sourceStates.deletedStates(ids)).toMatchObject([{ emitter_id: id }, { emitter_id: existing.id }]);
  });

  it('are listed newest first, in pages', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.unshift((await create()).id);
    const { rows, total } = await sources.list(owner, { limit: 2 });
    expect([rows.map(({ id }) => id), total]).toEqual([ids.slice(0, 2), 3]);
    expect(rows[0]?.component.inspected.description.configurable_props).toEqual([
      { name: 'z', type: 'string', secret: null },
      { name: 'a', type: 'string', secret: true },
    ]);
    expect((await sources.list(owner, { limit: 2, after: ids[1] })).rows.map(({ id }) => id)).toEqual([ids[2]]);
  });

  it('are listed in parts if their values, or the credentials of their inline connections, are large', async () => {
    const large = randomBytes(3000).toString('base64');
    const inline = { id: newId('connection'), app: 'chat', name: 'chat', credentials: large };
    await create({ configured_props: large });
    await create({ uses: [inline.id], inline: [inline] });
    await create();
    const part = async (maxBytes: number) => {
      const { rows, total, cut } = await sources.list(owner, { limit: 9 }, { maxBytes });
      return [rows.length, total, cut];
    };
    expect([await part(9000), await part(7000), await part(3000), await part(0)]).toEqual([
      [3, 3, false],
      [2, 3, true],
      [1, 3, true],
      [1, 3, true],
    ]);
  });
});
