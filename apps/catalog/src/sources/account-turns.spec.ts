import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import type { UserId } from '#contracts';
import { AccountTurns } from './account-turns.js';

const ME: UserId = 'u_1';
const OTHER: UserId = 'u_2';

let turns: AccountTurns;
let begun: string[];
let ends: Map<string, () => void>;

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['setImmediate'] });
  turns = new AccountTurns();
  begun = [];
  ends = new Map();
});
afterEach(() => void jest.useRealTimers());

const work = (name: string) => () => {
  begun.push(name);
  return new Promise<void>((resolve) => ends.set(name, resolve));
};
const end = async (name: string) => {
  ends.get(name)?.();
  await new Promise(setImmediate);
};

it('two changes of an account proceed at a time, and one that is alone overlaps none of them', async () => {
  const all = ['a', 'b', 'c'].map((name) => turns.take(ME, work(name)));
  all.push(
    ...['alone', 'alone too'].map((name) => turns.takeAlone(ME, work(name))),
    turns.take(ME, work('d')),
    turns.take(OTHER, work('other')),
  );
  await new Promise(setImmediate);
  expect(begun.splice(0)).toEqual(['a', 'b', 'other']);
  await end('a');
  await end('b');
  expect(begun.splice(0)).toEqual(['c']);
  await end('c');
  expect(begun.splice(0)).toEqual(['alone']);
  await end('alone');
  expect(begun.splice(0)).toEqual(['alone too']);
  await end('alone too');
  expect(begun).toEqual(['d']);
  for (const name of ['d', 'other']) await end(name);
  await Promise.all(all);
});

it('a change that waits for too long, or behind too many others, is refused and leaves its place', async () => {
  const first = turns.takeAlone(ME, work('first'));
  const waiting = Array.from({ length: 64 }, (_, n) => turns.take(ME, work(`${n}`)));
  const late = Promise.allSettled(waiting);
  await expect(turns.take(ME, work('too many'))).rejects.toMatchObject({ code: 'too_many_requests' });
  await jest.advanceTimersByTimeAsync(4000);
  for (const result of await late) expect(result).toMatchObject({ reason: { code: 'unavailable' } });
  const next = turns.take(ME, work('next'));
  await end('first');
  expect(begun).toEqual(['first', 'next']);
  await end('next');
  await Promise.all([first, next]);
});
