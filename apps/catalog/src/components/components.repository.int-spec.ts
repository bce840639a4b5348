import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type ComponentDescription, newId } from '#contracts';
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
    components = new ComponentsRepository(db.database.rows(ComponentRow), db.database.rows(Code));
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
    expect(await components.findUsable(owner, first!)).toMatchObject({ code_hash: 'h1', inspected: { code: '// h1' } });
    expect(await components.findUsable(newId('user'), first!)).toBeUndefined();
    expect(await components.findNewest(newId('user'), 'mine')).toBeUndefined();
    expect(await components.findCode('h3')).toEqual(code('h3', 'mine'));
    expect(await components.findCode('h4')).toBeUndefined();
  });

  it('are one per key in the registry, also when two are registered at the same time', async () => {
    await Promise.all(['r1', 'r2', 'r2'].map((hash) => registry.register('shared', code(hash, 'shared'), '/file')));
    const listed = await registry.list();
    expect(listed).toMatchObject([{ key: 'shared', name: 'N', version: null }]);
    expect(Object.keys(listed[0]!)).toEqual(['key', 'name', 'version', 'id', 'code_hash']);
    expect((await components.findRegistered('shared'))?.id).toBe(listed[0]?.id);
    expect(await components.findUsable(owner, listed[0]!.id)).toBeDefined();
    expect([await registry.remove('shared'), await registry.remove('shared')]).toEqual([true, false]);
    expect(await components.findRegistered('shared')).toBeUndefined();
  });
});
