import { zstdCompressSync } from 'node:zlib';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { getCode, type UserId } from '#contracts';
import type { AccountPace } from '#fairness';
import { FakeMessages } from '#testing';
import { CodeCache } from './code-cache.js';

const A: UserId = 'u_a';
const B: UserId = 'u_b';
const MIB = 1024 * 1024;
const description = { configurable_props: [{ name: 'http', type: '$.interface.http' }] };

let messages: FakeMessages;
let spent: [string, number][];
let cache: CodeCache;

const fetched = (): string[] => messages.requests.map(({ payload }) => (payload as { code_hash: string }).code_hash);

beforeEach(() => {
  messages = new FakeMessages();
  spent = [];
  cache = new CodeCache(messages as never, { spend: (...entry: [string, number]) => void spent.push(entry) } as unknown as AccountPace);
});

/** Each code has this size. */
function codeOf(bytes: number): void {
  messages.replyTo(getCode, ({ code_hash }) => ({ code: code_hash.padEnd(bytes), description }) as never);
}

describe('the code cache', () => {
  it('fetches code once, also for runs at the same time, and counts its size against the pace of the account', async () => {
    codeOf(64 * 1024 - 1000);
    await Promise.all([cache.get(A, 'one'), cache.get(A, 'one')]);
    expect((await cache.get(B, 'one')).component.code).toMatch(/^one/);
    expect(fetched()).toEqual(['one']);
    expect(spent).toEqual([[A, 1]]);
  });

  it('unpacks the packages of a component', async () => {
    const bundle = zstdCompressSync('the packages').toString('base64');
    messages.replyTo(getCode, () => ({ code: 'code', description, bundle }) as never);
    expect((await cache.get(A, 'one')).component).toEqual({ hash: 'one', code: 'code', packages: 'the packages' });
  });

  it('loses the code of an account with more than its part that was used longest ago, and that of no other', async () => {
    codeOf(5 * MIB);
    await cache.get(B, 'other');
    for (const hash of ['1', '2', '3', '4']) await cache.get(A, hash);
    await cache.get(A, '1');
    await cache.get(A, '5');
    messages.requests.length = 0;
    for (const hash of ['other', '1', '3', '4', '5']) await cache.get(B, hash);
    expect(fetched()).toEqual([]);
    await cache.get(A, '2');
    expect(fetched()).toEqual(['2']);
  });

  it('keeps descriptions for longer than code, because requests to endpoints need only them', async () => {
    codeOf(20 * MIB);
    for (const hash of ['1', '2', '3']) await cache.description(A, hash);
    expect(await cache.description(A, '1')).toEqual(description);
    expect(fetched()).toEqual(['1', '2', '3']);
  });

  it('fetches two codes of an account at a time, so that another account does not wait for all of them', async () => {
    const release = Promise.withResolvers<void>();
    const begun: string[] = [];
    messages.replyTo(getCode, ({ code_hash }) => {
      begun.push(code_hash);
      const reply = { code: '', description };
      return (code_hash === 'b' ? reply : release.promise.then(() => reply)) as never;
    });
    const fetches = ['1', '2', '3', '4', '5', '6', '7', '8', '9'].map((hash) => cache.get(A, hash));
    await cache.get(B, 'b');
    expect(begun).toEqual(['1', '2', 'b']);
    release.resolve();
    await Promise.all(fetches);
  });

  it('reports code that could not be fetched, and fetches it again', async () => {
    messages.replyTo(getCode, () => {
      throw new Error('down');
    });
    await expect(cache.get(A, 'one')).rejects.toThrow('down');
    codeOf(1);
    expect((await cache.get(A, 'one')).component.hash).toBe('one');
  });
});
