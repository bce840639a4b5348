import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type ComponentDescription, newId, type UserId } from '#contracts';
import { type FreshDatabase, freshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import { RegistryRepository } from '../registry/registry.repository.js';
import { Code, ComponentRow, type InspectedCode } from './component.entity.js';
import { ComponentsRepository } from './components.repository.js';

const code = (hash: string, key: string): InspectedCode => {
  const description = { name: 'N', key, version: null, hooks: [], configurable_props: [] } as unknown as ComponentDescription;
  return { hash, code: `// ${hash}`, description, bundle: Buffer.from(hash) };
};

describe('the components', () => {
  let db: FreshDatabase;
  let components: ComponentsRepository;
  let registry: RegistryRepository;
  const owner = newId('user');

  beforeAll(async () => {
    db = await freshDatabase(schema);
    components = new ComponentsRepository(db.database, db.database.rows(ComponentRow), db.database.rows(Code));
    registry = new RegistryRepository(db.database, db.database.rows(ComponentRow), components);
  });
  afterAll(() => db.drop());

  it('are found by id and by key, the newest first, with their code', async () => {
    const [first, second] = [newId('component'), newId('component')].sort();
    for (const [id, hash] of [
      [first, 'h1'],
      [second, 'h2'],
      // a repeated command changes nothing
      [first, 'h3'],
    ] as const)
      await components.add(db.database, { id: id!, owner_id: owner, code: code(hash, 'mine'), component_url: null });
    expect(await components.findNewest(owner, 'mine')).toMatchObject({ id: second, inspected: { code: '// h2' } });
    expect(await components.findVisible(owner, first!)).toMatchObject({ code_hash: 'h1', inspected: { code: '// h1' } });
    expect(await components.findVisible(newId('user'), first!)).toBeUndefined();
    expect(await components.describeUsable(owner, first!)).toMatchObject({ id: first, description: code('h1', 'mine').description });
    expect(await components.describeUsable(newId('user'), first!)).toBeUndefined();
    expect(await components.findNewest(newId('user'), 'mine')).toBeUndefined();
    expect(await components.findCode('h3')).toEqual(code('h3', 'mine'));
    expect(await components.findCode('h4')).toBeUndefined();
  });

  it('count the bytes of their account: those of code for the first account that submits it', async () => {
    const [one, other] = [newId('user'), newId('user')];
    const add = (owner_id: UserId | null, hash: string, id = newId('component'), component_url: string | null = null) =>
      components.add(db.database, { id, owner_id, code: code(hash, 'counted'), component_url });
    const { bundle, description } = code('c1', 'counted');
    const first = newId('component');
    await add(one, 'c1', first);
    const bytes = '// c1'.length + bundle!.length + JSON.stringify(description).length;
    expect(await components.storedBytes(one)).toBe(1024 + bytes);
    await add(one, 'c1', first);
    await Promise.all([add(one, 'c1'), add(one, 'c2'), add(other, 'c1'), add(null, 'c1')]);
    expect([await components.storedBytes(one), await components.storedBytes(other)]).toEqual([3 * 1024 + 2 * bytes, 1024]);
    const url = 'https://example.com/a.mjs';
    await add(other, 'c1', newId('component'), url);
    expect(await components.storedBytes(other)).toBe(2 * 1024 + url.length);
  });

  it('are refused beyond the bytes that their account may use, also if they are added at the same time, but can be repeated', async () => {
    const [one, other] = [newId('user'), newId('user')];
    const add = (owner_id: UserId | null, hash: string, id = newId('component')) =>
      components.add(db.database, { id, owner_id, code: code(hash, 'limited'), component_url: null }, 3000);
    const first = newId('component');
    await add(one, 'l0', first);
    const bytes = await components.storedBytes(one);
    const added = await Promise.allSettled(['l1', 'l2', 'l3', 'l4'].map((hash) => add(one, hash)));
    expect(added.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await components.storedBytes(one)).toBe(2 * bytes);
    const known = await Promise.all(['l1', 'l2', 'l3', 'l4'].map(async (hash) => (await components.findCode(hash)) !== undefined));
    expect(known.filter(Boolean)).toHaveLength(1);
    const message = `the components of this account would use ${2 * bytes + 1024} bytes; the limit is 3000`;
    await expect(add(one, 'l0')).rejects.toMatchObject({ code: 'conflict', message });
    await expect(components.requireWithin(one, 1024, 3000)).rejects.toMatchObject({ code: 'conflict', message });
    await add(one, 'l0', first);
    for (const owner_id of [other, null]) await add(owner_id, 'l5');
  });

  it('are deleted with their account, and their code unless another account has it', async () => {
    const [one, other] = [newId('user'), newId('user')];
    const add = (owner_id: UserId | null, hash: string) =>
      components.add(db.database, { id: newId('component'), owner_id, code: code(hash, 'gone'), component_url: null });
    for (const hash of ['d1', 'd2', 'd2', 'd3']) await add(one, hash);
    await add(other, 'd1');
    await add(null, 'd3');
    const remove = () => db.database.transaction((transaction) => components.removeAll(transaction, one));
    expect([await remove(), await remove()]).toEqual([4, 0]);
    const left = await Promise.all(['d1', 'd2', 'd3'].map(async (hash) => (await components.findCode(hash)) !== undefined));
    expect(left).toEqual([true, false, true]);
    expect(await components.findNewest(other, 'gone')).toMatchObject({ code_hash: 'd1' });
    expect([await components.storedBytes(one), (await components.storedBytes(other)) > 0]).toEqual([0, true]);
  });

  it('are deleted with their account by indexes, however many other accounts have', async () => {
    const plans = await db.database.transaction(async (transaction) => {
      await transaction.query('SET LOCAL enable_seqscan = off');
      const explain = (statement: string) => transaction.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${statement}`);
      const found = [
        await explain("DELETE FROM component WHERE owner_id = 'u_1' RETURNING code_hash"),
        // what the foreign key does for each of them
        await explain("SELECT FROM source WHERE component_id = 'sc_1' FOR KEY SHARE"),
      ];
      return found.map(({ rows }) => rows.map((row) => row['QUERY PLAN']).join('\n'));
    });
    expect(plans).toEqual([expect.stringContaining('component_by_owner'), expect.stringContaining('source_of_component')]);
  });

  it('are added while the last account with the same code is deleted', async () => {
    const [owners, hash] = [Array.from({ length: 20 }, () => newId('user')), 'd4'];
    const work = owners.map(async (owner_id) => {
      await components.add(db.database, { id: newId('component'), owner_id, code: code(hash, 'gone'), component_url: null });
      await db.database.transaction((transaction) => components.removeAll(transaction, owner_id));
    });
    await Promise.all(work);
    expect(await components.findCode(hash)).toBeUndefined();
  });

  it('are one per key in the registry, also when two are registered at the same time', async () => {
    await Promise.all(['r1', 'r2', 'r2'].map((hash) => registry.register('shared', code(hash, 'shared'), '/file')));
    const listed = await registry.list();
    expect(listed).toMatchObject([{ key: 'shared', name: 'N', version: null }]);
    expect(Object.keys(listed[0]!)).toEqual(['key', 'name', 'version', 'id', 'code_hash']);
    expect((await components.findRegistered('shared'))?.id).toBe(listed[0]?.id);
    expect(await components.findVisible(owner, listed[0]!.id)).toBeDefined();
    expect(await components.describeUsable(owner, listed[0]!.id)).toMatchObject({ id: listed[0]!.id });
    expect(await components.describeRegistered('shared')).toMatchObject({ id: listed[0]!.id, description: { key: 'shared' } });
    expect([await registry.remove('shared'), await registry.remove('shared')]).toEqual([true, false]);
    expect(await components.findRegistered('shared')).toBeUndefined();
    expect(await components.describeRegistered('shared')).toBeUndefined();
  });

  it('get no new sources by id after their key was removed from the registry, also if it is registered again, but remain visible', async () => {
    const register = async (hash: string) => {
      await registry.register('bad', code(hash, 'bad'), '/file');
      return (await components.describeRegistered('bad'))!.id;
    };
    const usable = async (ids: string[]) => {
      const found = await Promise.all(ids.map((id) => components.describeUsable(owner, id)));
      return found.map((component) => component !== undefined);
    };
    const ids = [await register('b1'), await register('b2')];
    const own = newId('component');
    await components.add(db.database, { id: own, owner_id: owner, code: code('b2', 'bad'), component_url: null });
    expect(await usable([...ids, own])).toEqual([true, true, true]);
    expect(await registry.remove('bad')).toBe(true);
    expect(await usable([...ids, own])).toEqual([false, false, true]);
    expect(await components.findVisible(owner, ids[0]!)).toBeDefined();
    const again = await register('b3');
    expect(await usable([...ids, again])).toEqual([false, false, true]);
    expect(await registry.remove('bad')).toBe(true);
    expect(await registry.remove('bad')).toBe(false);
  });

  it('are all removed with their key, also a version that is registered at the same moment', async () => {
    for (let n = 0; n < 20; n++) {
      const register = (version: string) => registry.register(`key-${n}`, code(`${n}-${version}`, `key-${n}`), '/file');
      await register('1');
      await Promise.all([register('2'), registry.remove(`key-${n}`)]);
      const { rows } = await db.database.query<{ state: string }>(
        `SELECT string_agg(CASE WHEN registered THEN 'registered' WHEN removed THEN 'removed' ELSE 'replaced' END, ' ' ORDER BY id) AS state
         FROM component WHERE key = $1`,
        [`key-${n}`],
      );
      // the one or the other was first
      expect(['removed removed', 'removed registered']).toContain(rows[0]!.state);
    }
  });

  it('are cut in a list of the registry by the size of their descriptions, however well they are compressed', async () => {
    for (const hash of ['large1', 'large2', 'large3']) {
      const large = code(hash, hash);
      large.description.description = 'x'.repeat(1000);
      await registry.register(hash, large, '/file');
    }
    const keys = async (maxBytes?: number) => {
      const { rows, cut } = await registry.page({ limit: 3 }, { maxBytes });
      return { keys: rows.map(({ key }) => key), cut };
    };
    expect(await keys()).toEqual({ keys: ['large3', 'large2', 'large1'], cut: false });
    expect(await keys(2500)).toEqual({ keys: ['large3', 'large2'], cut: true });
    expect(await keys(1)).toEqual({ keys: ['large3'], cut: true });
    expect(await keys(10_000)).toEqual({ keys: ['large3', 'large2', 'large1'], cut: false });
  });

  it('stay in the registry, or out of it, as the operator has decided when those that ship with Sluice are registered again', async () => {
    const file = '/app/components/feed.mjs';
    const ship = (hash: string) => registry.register('feed', code(hash, 'feed'), file, true);
    const registered = async () => (await components.describeRegistered('feed'))?.code_hash;
    await ship('s1');
    await ship('s2');
    expect(await registered()).toBe('s2');
    await registry.register('feed', code('own', 'feed'), '/home/feed.mjs');
    await ship('s2');
    await ship('s3');
    expect(await registered()).toBe('own');
    await registry.remove('feed');
    await ship('s3');
    await ship('s4');
    expect(await registered()).toBeUndefined();
    // the operator returns to the one that ships with Sluice, and gets its next versions
    await registry.register('feed', code('s4', 'feed'), 'components/feed.mjs');
    await ship('s4');
    await ship('s5');
    expect(await registered()).toBe('s5');
    // by the previous version, after a roll back
    await registry.register('feed', code('s4', 'feed'), file);
    await ship('s5');
    expect(await registered()).toBe('s5');
  });
});
