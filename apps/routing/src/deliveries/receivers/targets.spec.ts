import { expect, it, jest } from '@jest/globals';
import type { WebhookId } from '#contracts';
import { createLog, type Log } from '#observability';
import { SecretBox, SecretsKeyProblem } from '#secrets';
import { DeliveryStoreInMemory } from '../store/delivery-store-in-memory-for-tests.js';
import { Targets } from './targets.js';

const ID: WebhookId = 'wh_1';
const log = createLog('targets', 'silent');

/** A store that returns only when it is released. */
class SlowStore extends DeliveryStoreInMemory {
  readonly reads: (() => void)[] = [];

  override async findTargets(ids: WebhookId[]): ReturnType<DeliveryStoreInMemory['findTargets']> {
    const rows = await super.findTargets(ids);
    await new Promise<void>((resolve) => this.reads.push(resolve));
    return rows;
  }
}

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

it('takes what the database returns, even an older version: the database was restored', async () => {
  const store = new DeliveryStoreInMemory();
  const targets = new Targets(log, store, new SecretBox([]));
  store.addWebhook(ID, 'u_1', { version: 9, spilled: true });
  expect(await targets.load(ID)).toMatchObject({ version: 9, mode: 'spilled' });
  store.addWebhook(ID, 'u_1', { version: 4, spilled: false });
  expect(await targets.load(ID)).toMatchObject({ version: 4, mode: 'direct' });
  expect(await targets.get(ID)).toMatchObject({ version: 4, mode: 'direct' });
});

it('does not replace what it has read by what an earlier read returns later', async () => {
  const store = new SlowStore();
  const targets = new Targets(log, store, new SecretBox([]));
  store.addWebhook(ID, 'u_1', { version: 1 });
  const first = targets.load(ID);
  await settle();
  store.addWebhook(ID, 'u_1', { version: 2 });
  const second = targets.load(ID);
  await settle();
  // a second read begins when the first one has ended
  expect(store.reads).toHaveLength(1);
  store.reads.shift()?.();
  expect(await first).toMatchObject({ version: 1 });
  await settle();
  store.reads.shift()?.();
  expect(await second).toMatchObject({ version: 2 });
});

it('reads a webhook again after a second, also when the clock was set back', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] });
  try {
    const store = new DeliveryStoreInMemory();
    const targets = new Targets(log, store, new SecretBox([]));
    store.addWebhook(ID, 'u_1', { version: 1 });
    await targets.load(ID);
    targets.see(ID, 1);
    store.addWebhook(ID, 'u_1', { version: 2 });
    expect(await targets.get(ID)).toMatchObject({ version: 1 });
    jest.advanceTimersByTime(1000);
    jest.setSystemTime(Date.now() - 3_600_000);
    expect(await targets.get(ID)).toMatchObject({ version: 2 });
  } finally {
    jest.useRealTimers();
  }
});

it('reads a webhook again that has changed while it was being read', async () => {
  const store = new SlowStore();
  const targets = new Targets(log, store, new SecretBox([]));
  store.addWebhook(ID, 'u_1', { version: 1 });
  const first = targets.load(ID);
  await settle();
  store.addWebhook(ID, 'u_1', { version: 2, active: false });
  targets.outdate(ID);
  store.reads.shift()?.();
  expect(await first).toMatchObject({ version: 1 });
  const second = targets.get(ID);
  await settle();
  store.reads.shift()?.();
  expect(await second).toMatchObject({ version: 2, active: false });
});

it('reads a webhook again that this process has changed, although its former version is seen after that', async () => {
  const store = new DeliveryStoreInMemory();
  const targets = new Targets(log, store, new SecretBox([]));
  store.addWebhook(ID, 'u_1', { version: 1 });
  await targets.load(ID);
  store.addWebhook(ID, 'u_1', { version: 2 });
  targets.outdate(ID);
  targets.see(ID, 1);
  expect(await targets.get(ID)).toMatchObject({ version: 2 });
});

it('reads a webhook whose secret cannot be decrypted without keys, and logs that once', async () => {
  const store = new DeliveryStoreInMemory();
  const logged: object[] = [];
  const targets = new Targets({ ...log, error: (fields: object) => void logged.push(fields) } as Log, store, new SecretBox([]));
  store.addWebhook(ID, 'u_1', { secret: new SecretBox([Buffer.alloc(32)]).seal('whsec_AAAA', 'another') });
  store.addWebhook('wh_2', 'u_1');
  const [sealed, other] = await Promise.all([targets.load(ID), targets.load('wh_2')]);
  expect(sealed).toMatchObject({ keys: [], problem: expect.any(SecretsKeyProblem) });
  expect(other!.keys).toHaveLength(1);
  expect(other!.problem).toBeUndefined();
  await targets.load(ID);
  expect(logged).toEqual([{ webhook_id: ID, err: sealed!.problem }]);
});
