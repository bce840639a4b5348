import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { type ComponentDescription, inspectComponent, Invalid, type SluiceError, TimedOut, Unavailable } from '#contracts';
import { Messages } from '#messaging';
import { FakeMessages } from '#testing';
import { CatalogConfig } from '../catalog.config.js';
import { codeHash } from './component.entity.js';
import { ComponentsInMemory, describedAs } from './components-in-memory-for-tests.js';
import { ComponentsRepository } from './components.repository.js';
import { ComponentsService } from './components.service.js';
import { RemoteCode } from './remote-code.js';

const ME = 'u_000000000000000001';
const OTHER = 'u_000000000000000002';
const [FIRST, SECOND, THIRD] = ['sc_000000000000000001', 'sc_000000000000000002', 'sc_000000000000000003'] as const;

describe('the components of an account', () => {
  let service: ComponentsService;
  let stored: ComponentsInMemory;
  let messages: FakeMessages;
  let described: ComponentDescription;
  let fetched: string[];
  let onFetch: () => void;
  let fetchedUntil: number;

  beforeEach(async () => {
    stored = new ComponentsInMemory();
    described = describedAs();
    messages = new FakeMessages().replyTo(inspectComponent, () => described);
    fetched = [];
    onFetch = () => {};
    const remote = {
      read: async (_owner: string, url: string, until: number) => {
        fetchedUntil = until;
        onFetch();
        fetched.push(url);
        return `// from ${url}`;
      },
    };
    const module = await Test.createTestingModule({
      providers: [
        ComponentsService,
        { provide: ComponentsRepository, useValue: stored },
        { provide: Messages, useValue: messages },
        { provide: RemoteCode, useValue: remote },
        { provide: CatalogConfig, useValue: Object.assign(CatalogConfig.read({}), { maxCodeBytes: 100, maxStoredCodeBytes: 150 }) },
      ],
    })
      .useMocker(() => ({}))
      .compile();
    service = module.get(ComponentsService);
  });

  afterEach(() => void jest.restoreAllMocks());

  const create = (id: (typeof stored.rows)[number]['id'], code: string, owner_id: typeof ME | typeof OTHER = ME) =>
    service.create({ id, owner_id, component_code: code });

  it('returns a created component with its code, its hash, and times in seconds', async () => {
    described = describedAs({ name: 'Feed', version: '1.2.0', configurable_props: [{ name: 'url', type: 'string' }] });
    expect(await create(FIRST, 'code')).toEqual({
      id: FIRST,
      code: 'code',
      code_hash: codeHash('code'),
      name: 'Feed',
      version: '1.2.0',
      configurable_props: [{ name: 'url', type: 'string' }],
      created_at: 1_700_000_000,
      updated_at: 1_700_000_000,
    });
  });

  it('inspects the same code once, even if two accounts submit it', async () => {
    await create(FIRST, 'code');
    await create(SECOND, 'code', OTHER);
    await create(THIRD, 'other code');
    expect(messages.requests).toMatchObject([
      { name: inspectComponent.name, payload: { code: 'code' }, key: ME },
      { name: inspectComponent.name, payload: { code: 'other code' }, key: ME },
    ]);
  });

  it('inspects the same code once that an owner submits twice at the same time, and again after a failure', async () => {
    messages.replyTo(inspectComponent, () => {
      throw new Unavailable('no process');
    });
    const failed = await Promise.allSettled([create(FIRST, 'code'), create(SECOND, 'code')]);
    expect(failed).toEqual([FIRST, SECOND].map(() => ({ status: 'rejected', reason: expect.objectContaining({ message: 'no process' }) })));
    messages.replyTo(inspectComponent, () => described);
    const created = await Promise.all([create(FIRST, 'code'), create(SECOND, 'code'), create(THIRD, 'code', OTHER)]);
    expect(created.map(({ id }) => id)).toEqual([FIRST, SECOND, THIRD]);
    expect(messages.requests.map(({ key }) => key)).toEqual([ME, ME, OTHER]);
  });

  it('inspects code again that an owner submits a second time if the first caller stops waiting before', async () => {
    const { promise: late, resolve: end } = Promise.withResolvers<void>();
    let calls = 0;
    const reply = async () => {
      if (++calls > 1) return described;
      await late;
      throw new TimedOut('the caller has left');
    };
    messages.replyTo(inspectComponent, reply as never);
    const submit = (id: typeof FIRST | typeof SECOND, waits: number) =>
      service.create({ id, owner_id: ME, component_code: 'code' }, Date.now() + waits);
    const both = Promise.allSettled([submit(FIRST, 10_000), submit(SECOND, 50_000)]);
    await new Promise(setImmediate);
    const now = Date.now();
    jest.spyOn(Date, 'now').mockReturnValue(now + 10_000);
    end();
    expect(await both).toMatchObject([{ reason: { code: 'timeout' } }, { value: { id: SECOND } }]);
    expect(calls).toBe(2);
  });

  it('refuses code with which an account would exceed the limit, before it is inspected', async () => {
    await create(FIRST, 'x'.repeat(100));
    await expect(create(SECOND, 'y'.repeat(51))).rejects.toMatchObject({ code: 'conflict' });
    expect(messages.requests).toHaveLength(1);
    await create(THIRD, 'y'.repeat(51), OTHER);
  });

  it('keeps nothing of code that the runtime rejects', async () => {
    messages.replyTo(inspectComponent, () => {
      throw new Invalid('the code does not parse');
    });
    await expect(create(FIRST, 'nonsense')).rejects.toMatchObject({ code: 'invalid', message: 'the code does not parse' });
    expect({ rows: stored.rows.length, codes: stored.codes.size }).toEqual({ rows: 0, codes: 0 });
  });

  it('is made once by a command that is carried out twice', async () => {
    await create(FIRST, 'code');
    expect(await create(FIRST, 'code')).toMatchObject({ id: FIRST });
    expect(stored.rows).toHaveLength(1);
  });

  it.each(['name', 'key', 'version'] as const)('rejects a component whose %s cannot be stored', async (field) => {
    for (const text of ['a\0b', 'a\ud800']) {
      described = describedAs({ [field]: text });
      await expect(create(FIRST, 'code')).rejects.toMatchObject({ code: 'invalid' });
    }
    expect(stored.rows).toEqual([]);
  });

  it.each([
    ['name', 1024],
    ['key', 255],
    ['version', 1024],
  ] as const)('rejects a component whose %s has more than %d characters', async (field, limit) => {
    described = describedAs({ [field]: 'x'.repeat(limit) });
    await create(FIRST, 'code');
    described = describedAs({ [field]: 'x'.repeat(limit + 1) });
    const message = `the component's ${field} must be at most ${limit} characters long`;
    await expect(create(SECOND, 'other code')).rejects.toMatchObject({ code: 'invalid', message });
  });

  it.each([
    ['exactly as many bytes as are allowed', 'x'.repeat(100), true],
    ['one byte too many', 'x'.repeat(101), false],
    ['fewer characters but more bytes than are allowed', 'ä'.repeat(51), false],
  ])('limits the code in bytes: %s', async (_, code, isAccepted) => {
    const created = await create(FIRST, code).then(
      () => true,
      (error: SluiceError) => error.details.errors?.map(({ field }) => field),
    );
    expect(created).toEqual(isAccepted || ['component_code']);
  });

  it('fetches the code from its URL only when no code is given', async () => {
    const url = 'https://example.com/a.mjs';
    expect(await service.create({ id: FIRST, owner_id: ME, component_url: url })).toMatchObject({ code: `// from ${url}` });
    expect(await service.create({ id: SECOND, owner_id: ME, component_url: url, component_code: 'own' })).toMatchObject({ code: 'own' });
    expect(fetched).toEqual([url]);
    expect(stored.rows.map(({ component_url }) => component_url)).toEqual([url, url]);
  });

  it('fetches no code from a URL of more than 2048 characters', async () => {
    const url = `https://example.com/${'a'.repeat(2048 - 20)}`;
    // fetched, but longer than code may be
    await expect(service.create({ id: FIRST, owner_id: ME, component_url: url })).rejects.toThrow('the code has');
    await expect(service.create({ id: SECOND, owner_id: ME, component_url: `${url}a` })).rejects.toMatchObject({
      details: { errors: [{ field: 'component_url', message: 'component_url must be at most 2048 characters long' }] },
    });
    expect(fetched).toEqual([url]);
  });

  it('stores no user name and no password of the URL', async () => {
    const from = { component_url: 'https://me:secret@example.com/a.mjs?ref=main', component_code: 'own' };
    await service.create({ id: FIRST, owner_id: ME, ...from });
    expect(stored.rows[0]?.component_url).toBe('https://example.com/a.mjs?ref=main');
  });

  it.each<[unknown]>([
    [6],
    [{ a: 1 }],
    ['a\0'],
    [null],
    ['nonsense'],
    [`https://example.com/${'a'.repeat(2048)}`],
    [`https://example.com/${'ä'.repeat(1000)}`],
  ])('stores no URL if the one beside code is %j', async (url) => {
    await service.create({ id: FIRST, owner_id: ME, component_url: url as string, component_code: 'own' });
    expect(stored.rows[0]?.component_url).toBeNull();
  });

  it.each([
    ['50 s', 60_000, 50_000],
    ['the rest of the time that the caller waits, less the time to store it', 30_000, 28_000],
  ])('is fetched and inspected within %s', async (_, waits, within) => {
    const begunAt = 1_800_000_000_000;
    const now = jest.spyOn(Date, 'now').mockReturnValue(begunAt);
    onFetch = () => now.mockReturnValue(begunAt + 20_000);
    await service.create({ id: FIRST, owner_id: ME, component_url: 'https://example.test/a.mjs' }, begunAt + waits);
    expect(fetchedUntil).toBe(begunAt + within);
    expect(messages.requests).toMatchObject([{ name: inspectComponent.name, timeoutMs: within - 20_000 }]);
  });

  it('rejects a component that has neither code nor a URL', async () => {
    await expect(service.create({ id: FIRST, owner_id: ME })).rejects.toMatchObject({
      code: 'invalid',
      details: { errors: [{ field: 'component_code' }] },
    });
  });

  describe('a lookup', () => {
    beforeEach(async () => {
      described = describedAs({ key: 'feed' });
      await create(FIRST, 'old');
      await create(SECOND, 'new');
      await create(THIRD, 'theirs', OTHER);
    });

    it.each([
      ['by id', FIRST, 'old'],
      ['by key, which means the newest', 'feed', 'new'],
    ])('%s finds the owner’s component', async (_, keyOrId, code) => {
      expect(await service.get(ME, keyOrId)).toMatchObject({ code });
    });

    it.each([
      ['another account’s id', THIRD],
      ['an id that does not exist', 'sc_000000000000000009'],
      ['an unknown key', 'mail'],
    ])('does not find %s', async (_, keyOrId) => {
      await expect(service.get(ME, keyOrId)).rejects.toMatchObject({ code: 'not_found' });
      await expect(service.usable(ME, keyOrId)).rejects.toMatchObject({ code: 'not_found' });
    });

    it('finds a component of the registry for every account, by id and by its key', async () => {
      for (const missing of [service.getRegistered('feed'), service.registered('feed')])
        await expect(missing).rejects.toMatchObject({
          code: 'not_found',
          message: 'registered component feed not found; GET /v1/registry lists them',
        });
      stored.register(THIRD);
      expect(await service.usable(ME, THIRD)).toMatchObject({ id: THIRD });
      expect(await service.getRegistered('feed')).toMatchObject({ code: 'theirs' });
      expect(await service.registered('feed')).toMatchObject({ id: THIRD });
    });

    it('does not accept a key in place of the id of a component', async () => {
      await expect(service.usable(ME, 'feed')).rejects.toMatchObject({ code: 'not_found' });
    });

    it('returns the code and the description of a hash, for the runtime', async () => {
      expect(await service.code(codeHash('new'))).toEqual({ code: 'new', description: described });
      await expect(service.code(codeHash('unknown'))).rejects.toMatchObject({ code: 'not_found' });
    });
  });
});
