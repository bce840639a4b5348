import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { newId } from '#contracts';
import type { Database } from '#database';
import type { Log } from '#observability';
import { SecretBox } from '#secrets';
import { type HeldKey, IdempotencyRepository } from './idempotency.repository.js';

describe('requests with an Idempotency-Key, while the database does not respond', () => {
  const account = newId('user');
  const CLAIMED = { rows: [{ claimed_at: 'then', first_at: new Date() }] };
  const RESPONSE = { status: 200, content_type: null, body: null };
  let statements: { text: string; end: PromiseWithResolvers<unknown> }[];
  let warnings: unknown[];
  let requests: IdempotencyRepository;

  beforeEach(() => {
    jest.useFakeTimers();
    statements = [];
    warnings = [];
    const query = (text: string) => {
      const end = Promise.withResolvers<unknown>();
      statements.push({ text, end });
      return end.promise;
    };
    const log = { warn: (...line: unknown[]) => warnings.push(line) } as unknown as Log;
    requests = new IdempotencyRepository({ query } as unknown as Database, new SecretBox([randomBytes(32)]), log);
  });
  afterEach(() => void jest.useRealTimers());

  const hold = async (): Promise<HeldKey> => {
    const claiming = requests.claim(account, 'key', Buffer.from('payload'));
    statements.shift()!.end.resolve(CLAIMED);
    const claim = await claiming;
    if (claim === 'other payload' || !('held' in claim)) throw new Error('not held');
    return claim.held;
  };

  it('fail after ten seconds, and release the key that they get later', async () => {
    const failure = requests.claim(account, 'key', Buffer.from('payload')).catch((error: unknown) => error);
    await jest.advanceTimersByTimeAsync(10_000);
    expect(await failure).toMatchObject({ code: 'unavailable', details: { reason: 'the database does not respond' } });
    statements.shift()!.end.resolve(CLAIMED);
    await jest.advanceTimersByTimeAsync(0);
    expect(statements.map(({ text }) => text)).toEqual([expect.stringContaining('SET free = true')]);
  });

  it.each<[string, string, (held: HeldKey) => Promise<void>]>([
    ['store the response', 'request.response-not-stored', (held) => requests.keep(held, RESPONSE)],
    ['release the key', 'idempotency-key.not-released', (held) => requests.release(held)],
  ])('%s behind the response after ten seconds, and log a failure', async (_, logged, end) => {
    const ended = end(await hold());
    await jest.advanceTimersByTimeAsync(10_000);
    await ended;
    statements[0]!.end.reject(new Error('down'));
    await jest.advanceTimersByTimeAsync(0);
    expect(warnings).toEqual([[{ account_id: account, err: new Error('down') }, logged]]);
  });

  it('keep the lease until the response is stored', async () => {
    const ended = requests.keep(await hold(), RESPONSE);
    await jest.advanceTimersByTimeAsync(10_000);
    await ended;
    void requests.renew();
    expect(statements.map(({ text }) => text)).toEqual([
      expect.stringContaining('SET status'),
      expect.stringContaining('SET leased_until'),
    ]);
    statements[0]!.end.resolve({ rows: [] });
    await jest.advanceTimersByTimeAsync(0);
    void requests.renew();
    expect(statements).toHaveLength(2);
  });

  it('fail at once if the response cannot be stored', async () => {
    const ended = requests.keep(await hold(), RESPONSE);
    statements[0]!.end.reject(new Error('down'));
    await expect(ended).rejects.toThrow('down');
  });
});
