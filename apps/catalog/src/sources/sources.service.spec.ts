import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import {
  type ComponentDescription,
  type ConnectionId,
  connectionContext,
  type CreateSource,
  type EmitterState,
  type Hook,
  inspectComponent,
  newId,
  type PatchSource,
  type Source,
  type SourceId,
  type UpdateSource,
} from '#contracts';
import { Messages } from '#messaging';
import { createLog, LOG } from '#observability';
import { SecretBox } from '#secrets';
import { FakeMessages } from '#testing';
import { CatalogConfig } from '../catalog.config.js';
import { codeHash } from '../components/component.entity.js';
import { ComponentsInMemory, describedAs } from '../components/components-in-memory-for-tests.js';
import { ComponentsRepository } from '../components/components.repository.js';
import { ComponentsService } from '../components/components.service.js';
import { RemoteCode } from '../components/remote-code.js';
import { SourcesInMemory } from './sources-in-memory-for-tests.js';
import type { ConnectionRow } from './connection.entity.js';
import { ConnectionsRepository } from './connections.repository.js';
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
  let config: CatalogConfig;
  let connections: Pick<ConnectionRow, 'id' | 'app' | 'credentials'>[];

  beforeEach(async () => {
    components = new ComponentsInMemory();
    sources = new SourcesInMemory(components);
    described = describedAs({ name: 'My source', configurable_props: [TIMER, HTTP, { name: 'url', type: 'string', optional: true }] });
    messages = new FakeMessages().replyTo(inspectComponent, () => described);
    connections = [];
    config = Object.assign(CatalogConfig.read({ SLUICE_ENDPOINTS_URL: 'https://in.test' }), { minIntervalSeconds: 10 });
    const module = await Test.createTestingModule({
      providers: [
        SourcesService,
        ComponentsService,
        { provide: SourcesRepository, useValue: sources },
        { provide: ConnectionsRepository, useValue: { findAll } },
        { provide: ComponentsRepository, useValue: components },
        { provide: RemoteCode, useValue: { read: async (_owner: string, url: string) => `// from ${url}` } },
        { provide: Messages, useValue: messages },
        { provide: CatalogConfig, useValue: config },
        { provide: SecretBox, useValue: new SecretBox([Buffer.alloc(32, 1)]) },
        { provide: LOG, useValue: createLog('test', 'silent') },
      ],
    })
      .useMocker(() => ({}))
      .compile();
    service = module.get(SourcesService);
  });

  /** The shared connections, and the others that sources use. */
  const findAll = async (_owner: string, ids: string[]) => {
    const inline = [...sources.rows.values()].flatMap(({ id: source_id, credentials }) =>
      Object.entries(credentials ?? {}).map(([id, sealed]) => ({ id, source_id, credentials: sealed })),
    );
    const all = new Map([...inline, ...connections].map((each) => [each.id, each]));
    return [...all.values()].filter(({ id }) => ids.includes(id));
  };
  const keep = (id: typeof COMPONENT, owner_id: typeof ME | typeof OTHER | null, code = 'kept') =>
    components.add(undefined, {
      id,
      owner_id,
      code: { code, hash: codeHash(code), description: described, bundle: null },
      component_url: null,
    });
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

  it('may have props that are named like members of every object', async () => {
    described = describedAs({
      configurable_props: [
        { ...TIMER, name: 'constructor' },
        { name: 'valueOf', type: 'string', secret: true },
      ],
    });
    const { configured_props } = await create({ component_code: 'code', configured_props: { valueOf: 'x' } });
    expect(configured_props).toEqual({ constructor: { cron: null, interval_seconds: 60 }, valueOf: '••••••••' });
    expect((await update({ component_code: 'code' })).configured_props).toEqual(configured_props);
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

  it('are refused beyond the limit before code is inspected, but a command for the last one can be repeated', async () => {
    jest.replaceProperty(config, 'maxSources', 2);
    await create({ component_code: 'code' });
    const last: Partial<CreateSource> = { id: 'dc_000000000000000002', component_code: 'code' };
    const made = await create(last);
    described = describedAs({ name: 'Never seen' });
    const refused = create({ id: 'dc_000000000000000003', component_code: 'more code' });
    await expect(refused).rejects.toMatchObject({ code: 'conflict' });
    expect(components.rows.map(({ inspected }) => inspected.description.name)).not.toContain('Never seen');
    expect(await create(last)).toEqual(made);
    expect(await create({ id: 'dc_000000000000000003', owner_id: OTHER, component_code: 'code' })).toMatchObject({ user_id: OTHER });
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

  it('announces no new source: a service that does not know it looks it up', async () => {
    await create({ component_code: 'code' });
    expect(messages.announced).toEqual([]);
  });

  it.each([
    ['an endpoint to a source whose component has an HTTP interface', [TIMER, HTTP], expect.stringMatching(/^[0-9A-Za-z]{24}$/)],
    ['no endpoint to another one', [TIMER], null],
  ])('gives %s', async (_, configurable_props, endpoint_key) => {
    described = describedAs({ configurable_props });
    await create({ component_code: 'code' });
    expect(sources.rows.get(ID)).toMatchObject({ endpoint_key });
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
      sources.rows.get(ID)!.created_at = new Date(0);
    });

    /** Of each announcement: the version, and the number of services. */
    const WITH_STATE_BEFORE = [
      [2, 1],
      [3, 2],
      [3, 1],
      [4, 4],
    ];
    it.each<[string, Hook[], Hook[], number[][]]>([
      [
        'a change of a new source with hooks waits until the runtime has the state before it',
        ['activate'],
        ['activate'],
        WITH_STATE_BEFORE,
      ],
      [
        'a change that gives a new source its first hooks waits until the runtime has the state before it',
        [],
        ['deploy'],
        WITH_STATE_BEFORE,
      ],
      [
        'a change of a new source without hooks is announced without the state before it',
        [],
        [],
        [
          [3, 2],
          [4, 4],
        ],
      ],
    ])('%s', async (_, before, after, expected) => {
      described = { ...described, hooks: before };
      await update({ component_code: 'before' });
      messages.announced.length = 0;
      sources.rows.get(ID)!.created_at = new Date();
      described = { ...described, hooks: after };
      await update({ component_code: 'after', active: false });
      await service.delete({ owner_id: ME, id: ID });
      expect(messages.announced.map(({ to, payload }) => [(payload as EmitterState).version, to.length])).toEqual(expected);
    });

    it('keeps the configured props and the endpoint, and sets name and state to their defaults', async () => {
      const before = await service.get({ owner_id: ME, id: ID });
      const after = await update({ component_code: 'new code', configured_props: null });
      expect(after.configured_props).toEqual(before.configured_props);
      expect(after).toMatchObject({ name: 'my-source', active: true });
      expect(announced()).toMatchObject([{ version: 2, deployment: { code_hash: codeHash('new code') } }]);
    });

    it('resets a prop that the new props do not mention, a timer to its default', async () => {
      const { configured_props } = await update({ component_code: 'code', configured_props: {} });
      expect(configured_props).toEqual({ timer: { cron: null, interval_seconds: 60 }, http: expect.anything() });
    });

    it('keeps the schedule of a timer whose default changes in the new code', async () => {
      await update({ component_code: 'code', configured_props: {} });
      described = describedAs({ configurable_props: [{ ...TIMER, default: { intervalSeconds: 3600 } }] });
      const { configured_props } = await update({ component_code: 'slower' });
      expect(configured_props).toEqual({ timer: { cron: null, interval_seconds: 60 } });
    });

    it.each<[string, (choice: { component_code: string }) => Promise<Source>]>([
      ['an update', (choice) => update(choice)],
      ['a patch', (choice) => service.patch({ id: ID, owner_id: ME, new_component_id: newId('component'), ...choice })],
    ])('%s with code keeps the connections that other requests set during the inspection and after it', async (_, change) => {
      described = describedAs({ configurable_props: [{ name: 'slack', type: 'app', app: 'slack' }] });
      const connect = async (id: ConnectionId) => {
        connections = [{ id, app: 'slack', credentials: '' }];
        const configured_props = { slack: { authProvisionId: id } };
        await service.patch({ id: ID, owner_id: ME, new_component_id: newId('component'), configured_props });
      };
      await update({ component_code: 'with a connection', configured_props: {} });
      await connect('apn_000000000000000001');
      messages.replyTo(inspectComponent, (async () => {
        await connect('apn_000000000000000002');
        return described;
      }) as never);
      const add = components.add.bind(components);
      components.add = async (...component) => {
        await connect('apn_000000000000000003');
        await add(...component);
      };
      expect(await change({ component_code: 'new code' })).toMatchObject({
        configured_props: { slack: { authProvisionId: 'apn_000000000000000003' } },
      });
    });

    it('does not take over a shared connection beside which an earlier version stored $auth', async () => {
      described = describedAs({ configurable_props: [{ name: 'slack', type: 'app', app: 'slack' }] });
      const id = 'apn_000000000000000001';
      const credentials = new SecretBox([Buffer.alloc(32, 1)]).seal(JSON.stringify({ key: 'secret' }), connectionContext(id));
      connections = [{ id, app: 'slack', credentials }];
      await update({ component_code: 'with a connection', configured_props: { slack: { authProvisionId: id } } });
      const stored = { configured_props: { slack: { authProvisionId: id, $auth: {} } }, credentials: { [id]: credentials } };
      Object.assign(sources.rows.get(ID)!, stored);
      const patched = await service.patch({ id: ID, owner_id: ME, new_component_id: newId('component'), active: false });
      expect(patched).toMatchObject({ active: false, configured_props: { slack: { authProvisionId: id } } });
      // the fake stores the connections that the source takes for its own
      expect(sources.rows.get(ID)?.credentials).toBeNull();
    });

    it('can be changed although the credentials of its connections have become large, which have a limit each', async () => {
      described = describedAs({ configurable_props: [{ name: 'slack', type: 'app', app: 'slack' }] });
      await update({ component_code: 'with a connection', configured_props: { slack: { $auth: { key: 'k' } } } });
      const row = sources.rows.get(ID)!;
      const [id] = Object.keys(row.credentials ?? {});
      const box = new SecretBox([Buffer.alloc(32, 1)]);
      row.credentials = { [id!]: box.seal(JSON.stringify({ key: 'k'.repeat(70_000) }), connectionContext(id!)) };
      expect(await service.patch({ id: ID, owner_id: ME, new_component_id: newId('component'), active: false })).toMatchObject({
        active: false,
      });
      await expect(update({ component_code: 'x', configured_props: { slack: { $auth: { key: 'k'.repeat(70_000) } } } })).rejects.toThrow(
        'at most 65536 bytes',
      );
    });

    it('does not store an endpoint that a client sends back', async () => {
      const { configured_props } = await service.get({ owner_id: ME, id: ID });
      await update({ component_code: 'code', configured_props });
      described = describedAs({ configurable_props: [TIMER, { name: 'url', type: 'string' }] });
      expect((await update({ component_code: 'other' })).configured_props).toEqual({
        timer: configured_props['timer'],
        url: 'https://a.test',
      });
    });

    it('makes a source inactive, and announces it', async () => {
      expect(await update({ component_code: 'code', active: false })).toMatchObject({ active: false });
      expect(announced()).toMatchObject([{ active: false, deleted: false }]);
    });

    it.each<[string, { active?: boolean; name?: string }, readonly string[]]>([
      ['that changes the name', { name: 'After' }, ['runtime']],
      ['that makes the source inactive', { active: false }, ['runtime', 'routing']],
      ['that changes nothing, because it may be repeated', {}, ['runtime', 'routing']],
    ])('is announced to the services that act on it: one %s', async (_, patch, services) => {
      await service.patch({ id: ID, owner_id: ME, new_component_id: newId('component'), ...patch });
      expect(messages.announced.map(({ to }) => to)).toEqual([services]);
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

    it('takes a component of the registry by key', async () => {
      described = describedAs({ key: 'feed', configurable_props: [TIMER, { name: 'url', type: 'string', optional: true }] });
      await keep('sc_000000000000000003' as typeof COMPONENT, OTHER, 'registered');
      components.register('sc_000000000000000003');
      expect(await update({ key: 'feed' })).toMatchObject({ component_id: 'sc_000000000000000003' });
      await expect(update({ key: 'nobody-has-this' })).rejects.toMatchObject({ code: 'not_found' });
    });

    it('keeps a component that was removed from the registry, but takes none', async () => {
      const registered = 'sc_000000000000000003' as typeof COMPONENT;
      await keep(registered, OTHER, 'registered');
      components.register(registered);
      await update({ component_id: registered });
      await create({ id: 'dc_000000000000000002', component_code: 'code' });
      components.remove(registered);
      expect(await update({ component_id: registered, name: 'After' })).toMatchObject({ component_id: registered, name: 'After' });
      const patch: PatchSource = { id: ID, owner_id: ME, new_component_id: newId('component'), component_id: registered };
      expect(await service.patch({ ...patch, active: false })).toMatchObject({ component_id: registered, active: false });
      for (const refused of [
        update({ id: 'dc_000000000000000002', component_id: registered }),
        service.patch({ ...patch, id: 'dc_000000000000000002' }),
        create({ id: 'dc_000000000000000005', component_id: registered }),
      ])
        await expect(refused).rejects.toMatchObject({ code: 'not_found' });
    });

    it('keeps the external id unless it gives another one, or null', async () => {
      expect(await update({ component_code: 'code', external_id: 'mine' })).toMatchObject({ external_id: 'mine' });
      expect(await update({ component_code: 'code' })).toMatchObject({ external_id: 'mine' });
      expect(await update({ component_code: 'code', external_id: null })).not.toHaveProperty('external_id');
    });
  });

  describe('a patch', () => {
    const NAMED = { name: 'Before', configured_props: { url: 'https://a.test', timer: { intervalSeconds: 30 } } };
    const patch = (fields: Partial<PatchSource>) =>
      service.patch({ id: ID, owner_id: ME, new_component_id: newId('component'), ...fields });
    beforeEach(async () => {
      await create({ component_code: 'code', ...NAMED, external_id: 'mine' });
      messages.announced.length = 0;
    });

    it.each<[string, Partial<PatchSource>, object]>([
      ['the name', { name: 'After' }, { name: 'After', name_slug: 'after' }],
      ['the name, which null resets', { name: null }, { name: 'my-source', name_slug: 'my-source' }],
      ['whether it is active', { active: false }, { active: false }],
      ['the external id', { external_id: 'other' }, { external_id: 'other' }],
      [
        'one prop',
        { configured_props: { url: 'https://b.test' } },
        { configured_props: { url: 'https://b.test', timer: { interval_seconds: 30 } } },
      ],
      [
        'the value of a prop as a whole',
        { configured_props: { timer: { cron: '0 9 * * 1' } } },
        { configured_props: { timer: { cron: '0 9 * * 1', interval_seconds: null } } },
      ],
    ])('changes %s and nothing else', async (_, fields, changed) => {
      const before = await service.get({ owner_id: ME, id: ID });
      const after = await patch(fields);
      expect(after).toMatchObject(changed);
      for (const [field, value] of Object.entries(before))
        if (!Object.hasOwn(changed, field)) expect([field, after[field as never]]).toEqual([field, value]);
    });

    it('removes a prop by null; a timer gets its default', async () => {
      const { configured_props } = await patch({ configured_props: { url: null, timer: null, never_set: null } });
      expect(configured_props).toEqual({ timer: { cron: null, interval_seconds: 60 }, http: expect.anything() });
    });

    it('cannot remove the component, but null counts as absent beside another way to choose one', async () => {
      await expect(patch({ component_id: null as never })).rejects.toMatchObject({
        details: { errors: [{ field: 'component_id', message: 'component_id must not be null: a source always has a component' }] },
      });
      await expect(patch({ key: null as never })).rejects.toMatchObject({ details: { errors: [{ field: 'key' }] } });
      expect(await patch({ component_id: null as never, component_code: 'other' })).toMatchObject({ name: 'Before' });
    });

    it('a null removes the external id', async () => {
      expect(await patch({ external_id: null })).not.toHaveProperty('external_id');
    });

    it('keeps the schedule of a timer that it does not mention, whatever the default in the new code', async () => {
      await patch({ configured_props: { timer: null } });
      described = describedAs({
        configurable_props: [
          { ...TIMER, default: { intervalSeconds: 3600 } },
          { name: 'url', type: 'string' },
        ],
      });
      expect(await patch({ component_code: 'slower' })).toMatchObject({
        name: 'Before',
        configured_props: { timer: { interval_seconds: 60 } },
      });
    });

    it('keeps the schedule of a timer that it does not mention, also below a minimum that was raised since', async () => {
      Object.assign(config, { minIntervalSeconds: 60 });
      const kept = { configured_props: { timer: { interval_seconds: 30 } } };
      expect(await patch({ active: false })).toMatchObject({ ...kept, active: false });
      expect(await update({ component_code: 'code' })).toMatchObject({ ...kept, active: true });
      await expect(patch({ configured_props: { timer: { intervalSeconds: 31 } } })).rejects.toThrow('at least 60');
    });

    it.each([
      [{ intervalSeconds: 30 }, { cron: null, interval_seconds: 30 }],
      [{ interval_seconds: 30 }, { intervalSeconds: 30, cron: null }],
      [{ cron: '0 9 * * 1' }, { cron: '0 9 * * 1', interval_seconds: null }],
      [
        { cron: '0 9 * * 1', timezone: 'Europe/Rome' },
        { cron: '0 9 * * 1', interval_seconds: null, timezone: 'Europe/Rome' },
      ],
      [null, { cron: null, interval_seconds: 60 }],
    ])('does not change a timer that was written as %j by %j', async (written, timer) => {
      await patch({ configured_props: { timer: written } });
      const version = sources.rows.get(ID)!.version;
      // the limit is for other schedules
      Object.assign(config, { minIntervalSeconds: 100 });
      await patch({ configured_props: { url: 'https://a.test', timer } });
      expect(sources.rows.get(ID)!.version).toBe(version);
    });

    it('changes a timer by another timezone, and refuses a field that would have no effect', async () => {
      await patch({ configured_props: { timer: { cron: '0 9 * * 1' } } });
      const timer = { cron: '0 9 * * 1', timezone: 'Europe/Rome' };
      expect((await patch({ configured_props: { timer } })).configured_props.timer).toMatchObject(timer);
      await expect(patch({ configured_props: { timer: { ...timer, seconds: 1 } } })).rejects.toThrow('seconds');
    });

    it.each([
      ['a patch', (configured_props: object) => patch({ configured_props: { ...configured_props } })],
      ['an update', (configured_props: object) => update({ component_code: 'code', configured_props: { ...configured_props } })],
    ])('%s that sends back the default of a timer does not configure it', async (_, send) => {
      await patch({ configured_props: { timer: null } });
      const { configured_props } = await service.get({ owner_id: ME, id: ID });
      expect((await send(configured_props)).configured_props).toEqual(configured_props);
      described = describedAs({ configurable_props: [{ name: 'url', type: 'string' }] });
      // otherwise the timer would have to be removed
      expect((await patch({ component_code: 'without timer' })).configured_props).toEqual({ url: 'https://a.test' });
    });

    it('takes the value of a prop that was a timer in the previous component', async () => {
      const timer = { cron: null, interval_seconds: 30 };
      described = describedAs({ configurable_props: [{ name: 'timer', type: 'object' }] });
      expect((await patch({ component_code: 'object', configured_props: { url: null, timer } })).configured_props).toEqual({ timer });
    });

    it('rejects the removal of a required prop, and an unknown prop, and keeps nothing', async () => {
      described = describedAs({ configurable_props: [{ name: 'url', type: 'string' }] });
      await expect(patch({ component_code: 'other', configured_props: { url: null, timer: null } })).rejects.toMatchObject({
        code: 'invalid',
        details: { errors: [{ field: 'configured_props.url' }] },
      });
      await expect(patch({ configured_props: { nope: 1 } })).rejects.toMatchObject({ code: 'invalid' });
      expect({ components: components.rows.length, announced: announced() }).toEqual({ components: 1, announced: [] });
    });

    it.each<[string, Partial<PatchSource>]>([
      ['is empty', {}],
      ['repeats what the source has', { ...NAMED, component_code: 'code', active: true }],
    ])('changes nothing if it %s', async (_, fields) => {
      await patch(fields);
      expect({ version: sources.rows.get(ID)?.version, components: components.rows.length }).toEqual({ version: 1, components: 1 });
    });

    it.each<[string, object | undefined, number]>([
      ['the same', { key: 'secret' }, 2],
      ['no', undefined, 2],
      ['other', { key: 'another' }, 3],
    ])('a source with %s inline credentials has the version that follows from it', async (_, $auth, version) => {
      described = describedAs({ configurable_props: [TIMER, { name: 'url', type: 'string' }, { name: 'chat', type: 'app', app: 'chat' }] });
      const { configured_props } = await patch({ component_code: 'with an app', configured_props: { chat: { $auth: { key: 'secret' } } } });
      const { authProvisionId } = configured_props.chat as { authProvisionId: string };
      await patch({ configured_props: { chat: $auth ? { $auth } : { authProvisionId } } });
      expect(sources.rows.get(ID)?.version).toBe(version);
    });

    it('does not depend on the connection that the source had before another request replaced it', async () => {
      described = describedAs({ configurable_props: [TIMER, { name: 'url', type: 'string' }, { name: 'chat', type: 'app', app: 'chat' }] });
      await patch({ component_code: 'with an app', configured_props: { chat: { $auth: { key: 'secret' } } } });
      const before = sources.rows.get(ID)!;
      connections = [{ id: 'apn_000000000000000001', app: 'chat', credentials: '' }];
      await patch({ configured_props: { chat: { authProvisionId: 'apn_000000000000000001' } } });
      jest.spyOn(sources, 'find').mockResolvedValueOnce(before);
      expect(await patch({ active: false })).toMatchObject({
        active: false,
        configured_props: { chat: { authProvisionId: 'apn_000000000000000001' } },
      });
    });

    it('rejects an external id that another source has, and keeps no component', async () => {
      await create({ id: 'dc_000000000000000002', component_code: 'code', external_id: 'taken' });
      const kept = components.rows.length;
      await expect(patch({ component_code: 'new code', external_id: 'taken' })).rejects.toMatchObject({ code: 'conflict' });
      await expect(create({ id: 'dc_000000000000000003', component_code: 'new code', external_id: 'taken' })).rejects.toMatchObject({
        code: 'conflict',
      });
      expect(components.rows.length).toBe(kept);
      expect(await create({ id: 'dc_000000000000000004', owner_id: OTHER, component_code: 'code', external_id: 'taken' })).toMatchObject({
        external_id: 'taken',
      });
    });
  });

  it('announces a deletion with a newer version, and does not find the source afterwards', async () => {
    await create({ component_code: 'code' });
    await service.delete({ owner_id: ME, id: ID });
    expect(announced().at(-1)).toMatchObject({ emitter_id: ID, deleted: true, active: false, version: 2 });
    expect(messages.announced.at(-1)?.to).toEqual(['runtime', 'routing', 'event-store', 'gateway']);
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
    for (let n = 0; n < 2; n++) await service.switchOff({ owner_id: ME, id: ID, version: 1, reason: 'it kills its process' });
    expect(announced().map(({ version, active }) => ({ version, active }))).toEqual([{ version: 2, active: false }]);
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
