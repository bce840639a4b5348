import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspectComponent, Invalid, newId } from '#contracts';
import { Messages } from '#messaging';
import { createLog } from '#observability';
import { FakeMessages } from '#testing';
import { codeHash, type InspectedCode } from '../components/component.entity.js';
import { ComponentsInMemory, describedAs } from '../components/components-in-memory-for-tests.js';
import { ComponentsRepository } from '../components/components.repository.js';
import { type RegisteredComponent, RegistryRepository } from './registry.repository.js';
import { OwnComponents, RegistryService } from './registry.service.js';

/** In place of RegistryRepository: the newest code of each key. */
class RegistryInMemory implements Pick<RegistryRepository, 'list' | 'register' | 'remove'> {
  readonly registered = new Map<string, { code: InspectedCode; id: string }>();

  async list() {
    return [...this.registered].map(([key, { code, id }]) => ({
      ...{ key, id, code_hash: code.hash },
      ...{ name: code.description.name, version: code.description.version },
    }));
  }

  async register(key: string, code: InspectedCode): Promise<void> {
    if (this.registered.get(key)?.code.hash !== code.hash) this.registered.set(key, { code, id: newId('component') });
  }

  async remove(key: string): Promise<boolean> {
    return this.registered.delete(key);
  }
}

describe('the registry', () => {
  let folder: string;
  let service: RegistryService;
  let components: ComponentsInMemory;
  let messages: FakeMessages;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-registry-'));
    components = new ComponentsInMemory();
    // The code of these tests is its own key.
    messages = new FakeMessages().replyTo(inspectComponent, ({ code }) => describedAs({ key: code || null, name: code }));
    const module = await Test.createTestingModule({
      providers: [
        RegistryService,
        { provide: RegistryRepository, useValue: new RegistryInMemory() },
        { provide: ComponentsRepository, useValue: components },
        { provide: Messages, useValue: messages },
      ],
    }).compile();
    service = module.get(RegistryService);
  });
  afterEach(() => rm(folder, { recursive: true }));

  const write = (files: Record<string, string>) =>
    Promise.all(Object.entries(files).map(([name, code]) => writeFile(join(folder, name), code)));
  const keys = async () => (await service.list()).map(({ key }) => key);

  it('registers every code file of a folder and nothing else in it', async () => {
    await write({ 'a.mjs': 'a', 'b.ts': 'b', 'c.cjs': 'c', 'd.js': 'd', 'README.md': 'text', 'x.json': '{}' });
    expect((await service.add(folder)).map(({ key }) => key)).toEqual(['a', 'b', 'c', 'd']);
  });

  it('returns what it registered, not what was there before', async () => {
    await write({ 'a.mjs': 'a', 'b.mjs': 'b' });
    await service.add(join(folder, 'a.mjs'));
    expect((await service.add(join(folder, 'b.mjs'))).map(({ key }) => key)).toEqual(['b']);
    expect(await keys()).toEqual(['a', 'b']);
  });

  it('does not inspect code that is known', async () => {
    await write({ 'a.mjs': 'a' });
    components.codes.set(codeHash('a'), { code: 'a', hash: codeHash('a'), description: describedAs({ key: 'known' }), bundle: null });
    expect((await service.add(folder)).map(({ key }) => key)).toEqual(['known']);
    expect(messages.requests).toEqual([]);
  });

  it.each([
    ['without a key', () => describedAs({ key: null }), { code: 'invalid', message: expect.stringMatching(/^a\.mjs: /) }],
    [
      'that the runtime rejects',
      () => {
        throw new Invalid('line 3: unexpected end');
      },
      { code: 'invalid', message: 'a.mjs: line 3: unexpected end' },
    ],
  ])('names the file of a component %s', async (_, reply, error) => {
    await write({ 'a.mjs': 'a' });
    messages.replyTo(inspectComponent, reply);
    await expect(service.add(folder)).rejects.toMatchObject(error);
    expect(await keys()).toEqual([]);
  });

  it('refuses a component whose name is too long, as for an account', async () => {
    await write({ 'a.mjs': 'a' });
    messages.replyTo(inspectComponent, () => describedAs({ key: 'a', name: 'n'.repeat(1025) }));
    await expect(service.add(folder)).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(/^a\.mjs: .* at most 1024/),
    });
  });

  it('waits longer for an inspection than for other requests', async () => {
    await write({ 'a.mjs': 'a' });
    await service.add(folder);
    expect(messages.requests[0]?.timeoutMs).toBeGreaterThan(20_000);
  });

  it('passes the error on if the runtime is unavailable', async () => {
    await write({ 'a.mjs': 'a' });
    const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    messages.replyTo(inspectComponent, () => {
      throw away;
    });
    await expect(service.add(folder)).rejects.toBe(away);
  });

  it.each([
    ['an empty folder', () => folder, 'invalid'],
    ['a path that does not exist', () => join(folder, 'none'), 'ENOENT'],
  ])('rejects %s', async (_, path, code) => {
    await expect(service.add(path())).rejects.toMatchObject({ code });
  });

  it('rejects a file that is not UTF-8', async () => {
    await writeFile(join(folder, 'a.mjs'), Buffer.from('caf\xe9', 'latin1'));
    await expect(service.add(folder)).rejects.toMatchObject({ code: 'invalid', message: 'a.mjs is not UTF-8' });
  });

  it('rejects a file that has a NUL character', async () => {
    await write({ 'a.mjs': 'a\0' });
    await expect(service.add(folder)).rejects.toMatchObject({ code: 'invalid', message: 'a.mjs has a NUL character' });
  });

  it('removes a component by its key, once', async () => {
    await write({ 'a.mjs': 'a' });
    await service.add(folder);
    await service.remove('a');
    expect(await keys()).toEqual([]);
    await expect(service.remove('a')).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('the components that ship with Sluice', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  const OF_PREVIOUS_VERSION = { key: 'http-request', name: 'HTTP request', version: null, id: newId('component'), code_hash: 'old' };

  /** A runtime that is ready after this time. */
  const startWith = (readyAfterMs: number, registered: RegisteredComponent[] = []) => {
    const readyAt = Date.now() + readyAfterMs;
    const add = jest.fn<RegistryService['add']>(async () => {
      if (Date.now() < readyAt) throw new Error('the runtime does not reply');
      return [];
    });
    const log = createLog('test', 'silent');
    const notFilled = jest.spyOn(log, 'error');
    const service = new OwnComponents({ add, list: async () => registered } as unknown as RegistryService, log);
    let started = false;
    void service.onApplicationBootstrap().then(() => (started = true));
    return { service, add, notFilled, isStarted: () => started };
  };

  it('are registered before the catalog of a new installation is ready if the runtime is not much later', async () => {
    const { add, notFilled, isStarted } = startWith(5000);
    await jest.advanceTimersByTimeAsync(4500);
    expect(isStarted()).toBe(false);
    await jest.advanceTimersByTimeAsync(1000);
    expect(isStarted()).toBe(true);
    expect(add).toHaveBeenLastCalledWith(expect.stringMatching(/\/components$/), { shipped: true });
    const tried = add.mock.calls.length;
    await jest.advanceTimersByTimeAsync(60_000);
    expect([add.mock.calls.length, notFilled.mock.calls.length]).toEqual([tried, 0]);
  });

  it('do not keep the catalog from being ready after an upgrade, and are registered when the runtime is ready', async () => {
    const { add, notFilled, isStarted } = startWith(5000, [OF_PREVIOUS_VERSION]);
    await jest.advanceTimersByTimeAsync(0);
    expect(isStarted()).toBe(true);
    await jest.advanceTimersByTimeAsync(5500);
    await expect(add.mock.results.at(-1)!.value).resolves.toEqual([]);
    expect(notFilled).not.toHaveBeenCalled();
  });

  it('are reported once after an upgrade if they cannot be registered, and tried again', async () => {
    const { add, notFilled } = startWith(60_000, [OF_PREVIOUS_VERSION]);
    await jest.advanceTimersByTimeAsync(75_000);
    expect(notFilled).toHaveBeenCalledTimes(1);
    await expect(add.mock.results.at(-1)!.value).resolves.toEqual([]);
  });

  it('are registered when the runtime is ready after minutes, which the catalog does not wait for', async () => {
    const { add, notFilled, isStarted } = startWith(300_000);
    await jest.advanceTimersByTimeAsync(21_000);
    expect(isStarted()).toBe(true);
    await jest.advanceTimersByTimeAsync(300_000);
    expect(notFilled).toHaveBeenCalledTimes(1);
    await expect(add.mock.results.at(-1)!.value).resolves.toEqual([]);
  });

  it('are reported as missing after some time, even if the clock is set back', async () => {
    const { service, notFilled } = startWith(300_000);
    jest.setSystemTime(Date.now() - 3_600_000);
    await jest.advanceTimersByTimeAsync(60_000);
    expect(notFilled).toHaveBeenCalledTimes(1);
    service.beforeApplicationShutdown();
    await jest.advanceTimersByTimeAsync(60_000);
  });

  it('are not tried again after the catalog stops', async () => {
    const { service, add } = startWith(300_000);
    await jest.advanceTimersByTimeAsync(60_000);
    service.beforeApplicationShutdown();
    const tried = add.mock.calls.length;
    await jest.advanceTimersByTimeAsync(300_000);
    expect(add).toHaveBeenCalledTimes(tried);
  });

  it('are not reported as missing because the catalog stops', async () => {
    const { service, add, notFilled } = startWith(0);
    const { promise, reject } = Promise.withResolvers<never>();
    add.mockReturnValueOnce(promise);
    void service.onApplicationBootstrap();
    await jest.advanceTimersByTimeAsync(21_000);
    service.beforeApplicationShutdown();
    reject(new Error('the service is stopping'));
    await jest.advanceTimersByTimeAsync(60_000);
    expect(notFilled).not.toHaveBeenCalled();
  });
});
