import { beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import {
  type ComponentDescription,
  type CreateSource,
  emitterChanged,
  type EmitterState,
  inspectComponent,
  newId,
  type SourceId,
  type UpdateSource,
} from '#contracts';
import { Messages } from '#messaging';
import { createLog, LOG } from '#observability';
import { FakeMessages } from '#testing';
import { CatalogConfig } from '../catalog.config.js';
import { codeHash } from '../components/component.entity.js';
import { ComponentsInMemory, describedAs } from '../components/components-in-memory-for-tests.js';
import { ComponentsRepository } from '../components/components.repository.js';
import { ComponentsService } from '../components/components.service.js';
import { RemoteCode } from '../components/remote-code.js';
import { SourcesInMemory } from './sources-in-memory-for-tests.js';
import { SourcesRepository } from './sources.repository.js';
import { SourcesService } from './sources.service.js';

const ME = 'u_000000000000000001';
const OTHER = 'u_000000000000000002';
const ID: SourceId = 'dc_000000000000000001';
const COMPONENT = 'sc_000000000000000001';
const NEW_COMPONENT = 'sc_000000000000000002';
const TIMER = { name: 'timer', type: '$.interface.timer', default: { intervalSeconds: 60 } };
const HTTP = { name: 'http', type: '$.interface.http' };

describe('the sources of an account', () => {
  let service: SourcesService;
  let components: ComponentsInMemory;
  let sources: SourcesInMemory;
  let messages: FakeMessages;
  let described: ComponentDescription;

  beforeEach(async () => {
    components = new ComponentsInMemory();
    sources = new SourcesInMemory(components);
    described = describedAs({ name: 'My source', configurable_props: [TIMER, HTTP, { name: 'url', type: 'string', optional: true }] });
    messages = new FakeMessages().replyTo(inspectComponent, () => described);
    const config = Object.assign(CatalogConfig.read({ SLUICE_ENDPOINTS_URL: 'https://in.test' }), { minIntervalSeconds: 10 });
    const module = await Test.createTestingModule({
      providers: [
        SourcesService,
        ComponentsService,
        { provide: SourcesRepository, useValue: sources },
        { provide: ComponentsRepository, useValue: components },
        { provide: RemoteCode, useValue: { read: async (_owner: string, url: string) => `// from ${url}` } },
        { provide: Messages, useValue: messages },
        { provide: CatalogConfig, useValue: config },
        { provide: LOG, useValue: createLog('test', 'silent') },
      ],
    })
      .useMocker(() => ({}))
      .compile();
    service = module.get(SourcesService);
  });

  const keep = (id: typeof COMPONENT, owner_id: typeof ME | typeof OTHER | null, code = 'kept') =>
    components.add(undefined, { id, owner_id, code: { code, hash: codeHash(code), description: described }, component_url: null });
  const create = (choice: Partial<CreateSource>) => service.create({ id: ID, owner_id: ME, new_component_id: NEW_COMPONENT, ...choice });
  const update = (choice: Partial<UpdateSource>) =>
    service.update({ id: ID, owner_id: ME, new_component_id: newId('component'), ...choice });
  const announced = () => messages.announced.map(({ payload }) => payload as EmitterState);

  it('shows a new source with its timers and its endpoint in the form in which they are read', async () => {
    const source = await create({
      component_code: 'code',
      configured_props: { url: 'https://a.test', timer: { cron: '0 9 * * 1', timezone: 'Europe/Rome' } },
    });
    expect(source).toEqual({
      id: ID,
      user_id: ME,
      component_id: NEW_COMPONENT,
      configured_props: {
        timer: { cron: '0 9 * * 1', interval_seconds: null, timezone: 'Europe/Rome' },
        http: { endpoint_url: expect.stringMatching(/^https:\/\/in\.test\/[0-9A-Za-z]{24}$/) },
        url: 'https://a.test',
      },
      active: true,
      created_at: 1_700_000_000,
      updated_at: 1_700_000_000,
      name: 'my-source',
      name_slug: 'my-source',
    });
  });

  it.each<[string, Partial<CreateSource>, string]>([
    [
      'an id before everything else',
      { component_id: COMPONENT, component_code: 'code', component_url: 'https://a.test', key: 'feed' },
      'kept',
    ],
    ['code before a URL and a key', { component_code: 'code', component_url: 'https://a.test', key: 'feed' }, 'code'],
    ['a URL before a key', { component_url: 'https://a.test', key: 'feed' }, '// from https://a.test'],
    ['a key of the registry last', { key: 'feed' }, 'registered'],
  ])('runs what comes first: %s', async (_, choice, code) => {
    described = describedAs({ key: 'feed' });
    await keep(COMPONENT, ME);
    await keep('sc_000000000000000003' as typeof COMPONENT, OTHER, 'registered');
    components.register('sc_000000000000000003');
    await create(choice);
    expect(sources.rows.get(ID)?.component.code_hash).toBe(codeHash(code));
  });

  it.each<[string, Partial<CreateSource>, string, string]>([
    ['no choice of a component', {}, 'invalid', 'component_id'],
    ['a choice of nulls', { component_id: null as never, key: null as never }, 'invalid', 'component_id'],
    ['an unknown prop', { component_code: 'code', configured_props: { x: 1 } }, 'invalid', 'configured_props.x'],
    [
      'a shorter interval than the operator allows',
      { component_code: 'code', configured_props: { timer: { intervalSeconds: 9 } } },
      'invalid',
      'configured_props.timer',
    ],
  ])('rejects %s and keeps nothing', async (_, choice, code, field) => {
    await expect(create(choice)).rejects.toMatchObject({ code, details: { errors: [{ field }] } });
    expect({ sources: sources.rows.size, components: components.rows.length, announced: announced() }).toEqual({
      ...{ sources: 0, components: 0 },
      announced: [],
    });
  });

  it.each<[string, Partial<CreateSource>]>([
    ['another account’s component', { component_id: COMPONENT }],
    ['a component that does not exist', { component_id: 'sc_000000000000000009' }],
    ['a component id that has not the form of one', { component_id: 'feed' }],
    ['a key that is not registered', { key: 'feed' }],
  ])('does not find %s', async (_, choice) => {
    await keep(COMPONENT, OTHER);
    await expect(create(choice)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('announces a new source before it returns it', async () => {
    await create({ component_code: 'code' });
    expect(messages.announced).toEqual([
      {
        name: emitterChanged.name,
        key: ID,
        payload: expect.objectContaining({ emitter_id: ID, owner_id: ME, active: true, deleted: false, version: 1 }),
      },
    ]);
    expect(announced()[0]?.deployment).toMatchObject({
      code_hash: codeHash('code'),
      schedules: { timer: { interval_seconds: 60, cron: null } },
      endpoint_key: expect.any(String),
    });
  });

  it('gives no endpoint to a source whose component has no HTTP interface', async () => {
    described = describedAs({ configurable_props: [TIMER] });
    await create({ component_code: 'code' });
    expect(announced()[0]?.deployment?.endpoint_key).toBeNull();
  });

  it('gives two sources of one name different slugs', async () => {
    await create({ component_code: 'code', name: 'A b' });
    expect(await create({ id: 'dc_000000000000000002', component_code: 'code', name: 'a B' })).toMatchObject({
      name: 'a B',
      name_slug: 'a-b-1',
    });
  });

  describe('an update', () => {
    beforeEach(async () => {
      await create({ component_code: 'code', name: 'Before', configured_props: { url: 'https://a.test', timer: { intervalSeconds: 30 } } });
      messages.announced.length = 0;
    });

    it('keeps the configured props and the endpoint, and sets name and state to their defaults', async () => {
      const before = await service.get({ owner_id: ME, id: ID });
      const after = await update({ component_code: 'new code' });
      expect(after.configured_props).toEqual(before.configured_props);
      expect(after).toMatchObject({ name: 'my-source', active: true });
      expect(announced()).toMatchObject([{ version: 2, deployment: { code_hash: codeHash('new code') } }]);
    });

    it('removes a configured prop that the new props do not mention, and keeps the schedule of a timer', async () => {
      const { configured_props } = await update({ component_code: 'code', configured_props: {} });
      expect(configured_props).toEqual({ timer: { cron: null, interval_seconds: 30 }, http: expect.anything() });
    });

    it('keeps the schedule of a timer whose default changes in the new code', async () => {
      described = describedAs({ configurable_props: [{ ...TIMER, default: { intervalSeconds: 3600 } }] });
      const { configured_props } = await update({ component_code: 'slower', configured_props: {} });
      expect(configured_props).toEqual({ timer: { cron: null, interval_seconds: 30 } });
    });

    it('makes a source inactive, and announces it', async () => {
      expect(await update({ component_code: 'code', active: false })).toMatchObject({ active: false });
      expect(announced()).toMatchObject([{ active: false, deleted: false }]);
    });

    it('keeps neither the component nor the change when the kept props do not fit the new component', async () => {
      described = describedAs({ configurable_props: [{ name: 'url', type: 'integer' }] });
      await expect(update({ component_code: 'other' })).rejects.toMatchObject({ code: 'invalid' });
      expect(components.rows.map(({ inspected }) => inspected.code)).toEqual(['code']);
      expect({ version: sources.rows.get(ID)?.version, announced: announced() }).toEqual({ version: 1, announced: [] });
    });

    it('does not inspect code for a source of another account', async () => {
      messages.requests.length = 0;
      await expect(update({ owner_id: OTHER, component_code: 'theirs' })).rejects.toMatchObject({ code: 'not_found' });
      expect(messages.requests).toEqual([]);
    });

    it('rejects an update that names a component of the registry', async () => {
      await expect(update({ key: 'feed' } as Partial<UpdateSource>)).rejects.toMatchObject({ code: 'invalid' });
    });
  });

  it('announces a deletion with a newer version, and does not find the source afterwards', async () => {
    await create({ component_code: 'code' });
    await service.delete({ owner_id: ME, id: ID });
    expect(announced().at(-1)).toMatchObject({ emitter_id: ID, deleted: true, active: false, version: 2 });
    for (const gone of [service.get({ owner_id: ME, id: ID }), service.delete({ owner_id: ME, id: ID })])
      await expect(gone).rejects.toMatchObject({ code: 'not_found' });
  });

  it('does not show or delete a source of another account', async () => {
    await create({ component_code: 'code' });
    await expect(service.get({ owner_id: OTHER, id: ID })).rejects.toMatchObject({ code: 'not_found' });
    await expect(service.delete({ owner_id: OTHER, id: ID })).rejects.toMatchObject({ code: 'not_found' });
    expect(sources.rows.has(ID)).toBe(true);
  });

  it('switches a source off once, and announces it once', async () => {
    await create({ component_code: 'code' });
    for (let n = 0; n < 2; n++) await service.switchOff({ owner_id: ME, id: ID, reason: 'it kills its process' });
    expect(announced().map(({ version, active }) => ({ version, active }))).toEqual([
      { version: 1, active: true },
      { version: 2, active: false },
    ]);
  });

  it('lists sources newest first, without their owner, and walks in both directions', async () => {
    const ids = [1, 2, 3].map((n) => `dc_00000000000000000${n}` as const);
    for (const id of ids) await create({ id, component_code: 'code' });
    await create({ id: 'dc_000000000000000004', owner_id: OTHER, component_code: 'code' });
    const list = (page: object) => service.list({ owner_id: ME, limit: 2, ...page });
    const first = await list({});
    expect(first).toMatchObject({ page_info: { total_count: 3, count: 2 }, data: [{ id: ids[2] }, { id: ids[1] }] });
    expect(first.data[0]).not.toHaveProperty('user_id');
    const rest = await list({ after: first.page_info.end_cursor });
    expect(rest.data.map(({ id }) => id)).toEqual([ids[0]]);
    expect((await list({ before: rest.page_info.start_cursor })).data.map(({ id }) => id)).toEqual([ids[2], ids[1]]);
  });

  it.each(['after', 'before'])('rejects %s when it is not a cursor of a source', async (cursor) => {
    await expect(service.list({ owner_id: ME, limit: 2, [cursor]: 'x' })).rejects.toMatchObject({ code: 'invalid' });
  });
});
