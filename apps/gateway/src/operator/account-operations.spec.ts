import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  deleteConnection,
  deleteSource,
  deleteWebhook,
  listConnections,
  listSourcesToDelete,
  listWebhooks,
  NotFound,
  removeFromCatalog,
  removeFromRouting,
  removeFromRuntime,
  SluiceError,
  Unavailable,
  suspendEmitters,
  suspendWebhooks,
  TimedOut,
  type UserId,
} from '#contracts';
import { FakeMessages } from '#testing';
import { AccountOperations } from './account-operations.js';
import { AccountsInMemory } from '../accounts/accounts-in-memory-for-tests.js';

const ID: UserId = 'u_000000000000000001';
const OTHER: UserId = 'u_000000000000000002';

describe('the commands for whole accounts', () => {
  let stored: AccountsInMemory;
  let messages: FakeMessages;
  let operations: AccountOperations;
  let sources: string[];
  /** Whether another command for the account is in progress. */
  let busy: boolean;
  let remarks: string[];

  beforeEach(async () => {
    stored = new AccountsInMemory();
    messages = new FakeMessages();
    busy = false;
    remarks = [];
    operations = new AccountOperations(
      stored,
      (id) => stored.remove(undefined, id),
      messages,
      async (_, work) => {
        if (busy) throw new SluiceError('conflict', 'another command is in progress');
        return work();
      },
      (text) => remarks.push(text),
    );
    sources = Array.from({ length: 150 }, (_, n) => `dc_${n}`);
    for (const id of [ID, OTHER]) {
      await stored.create(undefined, { id, email: `${id}@example.com`, username: id });
      await stored.addKey(undefined, { id: `key_${id}`, account_id: id, hash: Buffer.from(id), prefix: '', name: null, scope: 'write' });
    }
    const page = (ids: string[]) => ({ data: ids.slice(0, 100).map((id) => ({ id })), page_info: {} }) as never;
    const [webhooks, connections, hooks] = [['wh_1'], ['apn_1'], [2, 1, 0]];
    const removeOf =
      (ids: string[]) =>
      ({ id }: { id: string }): void => {
        if (!ids.includes(id)) throw new NotFound('it', id);
        ids.splice(ids.indexOf(id), 1);
      };
    messages
      .replyTo(listSourcesToDelete, () => page(sources))
      .replyTo(deleteSource, removeOf(sources))
      .replyTo(listWebhooks, () => page(webhooks))
      .replyTo(deleteWebhook, removeOf(webhooks))
      .replyTo(listConnections, () => page(connections))
      .replyTo(deleteConnection, removeOf(connections))
      .replyTo(removeFromRouting, () => ({ subscriptions: 3 }))
      .replyTo(removeFromRuntime, () => ({ hooks: hooks.shift() ?? 0 }))
      .replyTo(removeFromCatalog, () => ({ components: 4, workflows: 5 }))
      .replyTo(suspendWebhooks, () => ({ webhooks: 1 }));
  });
  const left = () => stored.accounts.map(({ id, suspended_at }) => [id, suspended_at !== null]);

  it('suspend everything, however many sources there are, and let it continue', async () => {
    for (const suspended of [true, false]) {
      let calls = 0;
      messages.replyTo(suspendEmitters, () => ({ sources: 50, workflows: calls === 0 ? 1 : 0, more: ++calls < 3 }));
      expect(await operations.suspend(ID, suspended)).toEqual({ sources: 150, workflows: 1, webhooks: 1 });
      expect(left()).toEqual([
        [ID, suspended],
        [OTHER, false],
      ]);
    }
  });

  it('revoke access before anything else, and give it back only when everything continues', async () => {
    messages.replyTo(suspendWebhooks, () => {
      throw new Unavailable('routing has stopped');
    });
    for (const step of [() => operations.suspend(ID, true), () => operations.suspend(ID, false)]) {
      await expect(step()).rejects.toThrow('routing has stopped');
      expect(left()[0]).toEqual([ID, true]);
    }
  });

  it('delete everything of one account', async () => {
    const removed = { sources: 150, webhooks: 1, connections: 1, subscriptions: 3, components: 4, workflows: 5, keys: 1 };
    expect(await operations.delete(ID)).toEqual(removed);
    expect(sources).toEqual([]);
    expect(left()).toEqual([[OTHER, false]]);
    expect(stored.keys.map(({ account_id }) => account_id)).toEqual([OTHER]);
    expect(messages.requests.map(({ payload }) => (payload as { owner_id: string }).owner_id)).not.toContain(OTHER);
  });

  it.each<[string, (commands: AccountOperations) => Promise<unknown>, string]>([
    ['suspend', (commands) => commands.suspend(ID, true), 'keys are refused already, but not everything is stopped: repeat'],
    ['resume', (commands) => commands.suspend(ID, false), 'not everything of the account continues yet: repeat'],
    ['delete', (commands) => commands.delete(ID), 'keys are refused already, but not everything is deleted: repeat'],
  ])('report the service that does not respond, and what the operator has to do: %s', async (_, command, unfinished) => {
    messages.replyTo(suspendEmitters, () => ({ sources: 0, workflows: 0, more: false }));
    await command(operations);
    expect(operations.unfinished).toBeUndefined();
    await stored.create(undefined, { id: ID, email: 'again@example.com', username: 'again' });
    jest.spyOn(messages, 'request').mockRejectedValue(new TimedOut('no reply'));
    await expect(command(operations)).rejects.toThrow('the service routing does not respond');
    expect(operations.unfinished).toContain(unfinished);
  });

  it('say once that they wait for a service', async () => {
    jest.useFakeTimers();
    try {
      jest.spyOn(messages, 'request').mockImplementation(async () => {
        await jest.advanceTimersByTimeAsync(6000);
        return { webhooks: 0, sources: 0, workflows: 0, more: false };
      });
      await operations.suspend(ID, true);
      await operations.suspend(ID, false);
      expect(remarks).toEqual(['waiting for the service routing, for up to 120 s', 'waiting for the service catalog, for up to 120 s']);
      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });

  it('delete the code of components only after the last hooks of their sources', async () => {
    await operations.delete(ID);
    const names = messages.requests.map(({ name }) => name);
    expect(names.filter((name) => name === removeFromRuntime.name)).toHaveLength(3);
    expect(names.at(-1)).toBe(removeFromCatalog.name);
  });

  it('look twice for what an account without sources and workflows was creating', async () => {
    let calls = 0;
    messages.replyTo(suspendEmitters, () => ({ sources: calls++, workflows: 0, more: calls === 2 }));
    expect(await operations.suspend(ID, true)).toEqual({ sources: 3, workflows: 0, webhooks: 1 });
    expect(calls).toBe(3);
  });

  it('can be repeated after a failure, which leaves the account suspended', async () => {
    messages.replyTo(removeFromCatalog, () => {
      throw new Unavailable('the catalog has stopped');
    });
    await expect(operations.delete(ID)).rejects.toThrow('the catalog has stopped');
    expect(left()[0]).toEqual([ID, true]);
    messages.replyTo(removeFromCatalog, () => ({ components: 4, workflows: 5 }));
    expect(await operations.delete(ID)).toMatchObject({ sources: 0, components: 4, keys: 1 });
    expect(left()).toEqual([[OTHER, false]]);
  });

  it('delete what requests in progress have created after the account was deleted', async () => {
    const removed = await operations.delete(ID);
    messages.replyTo(removeFromRouting, () => ({ subscriptions: 0 })).replyTo(removeFromCatalog, () => ({ components: 0, workflows: 0 }));
    sources.push('dc_late');
    expect([removed.keys, await operations.delete(ID)]).toMatchObject([1, { sources: 1, keys: 0 }]);
    await expect(operations.delete(ID)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('change nothing while another command for the account is in progress', async () => {
    busy = true;
    for (const step of [() => operations.suspend(ID, true), () => operations.suspend(ID, false), () => operations.delete(ID)])
      await expect(step()).rejects.toMatchObject({ code: 'conflict' });
    expect([left()[0], messages.requests]).toEqual([[ID, false], []]);
  });

  it.each(['u_000000000000000009', "' OR 1=1"])('do not suspend the account %s, which does not exist', async (id) => {
    await expect(operations.suspend(id, true)).rejects.toMatchObject({ code: 'not_found' });
    expect(messages.requests).toEqual([]);
  });

  it('do not delete an account by a malformed id', async () => {
    await expect(operations.delete("' OR 1=1")).rejects.toMatchObject({ code: 'not_found' });
    expect(messages.requests).toEqual([]);
  });
});
