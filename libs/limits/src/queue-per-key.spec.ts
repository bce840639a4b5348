import { expect, it } from '@jest/globals';
import { QueuePerKey } from './queue-per-key.js';

const queueOf = (limit: number, maxWaiting: number) => {
  const queue = new QueuePerKey<string>(() => limit, maxWaiting);
  const setLimit = (changed: number) => void (limit = changed);
  const begun: string[] = [];
  const join = (key: string, name: string) => {
    const place = queue.join(key);
    void place?.turn.then(() => begun.push(name));
    return place;
  };
  const begunNow = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return begun;
  };
  return { join, begunNow, setLimit };
};

it('lets as many of each key proceed as the limit allows, and the others in order when one has ended', async () => {
  const { join, begunNow } = queueOf(2, 9);
  const first = join('a', 'a1')!;
  for (const name of ['a2', 'a3', 'a4']) join('a', name);
  join('b', 'b1');
  expect(await begunNow()).toEqual(['a1', 'a2', 'b1']);
  first.leave();
  first.leave();
  expect(await begunNow()).toEqual(['a1', 'a2', 'b1', 'a3']);
});

it('passes the turn of one that no longer waits to the next one', async () => {
  const { join, begunNow } = queueOf(1, 9);
  const [first, second] = [join('a', 'a1')!, join('a', 'a2')!];
  join('a', 'a3');
  second.leave();
  first.leave();
  second.leave();
  expect(await begunNow()).toEqual(['a1', 'a3']);
});

it('refuses a key of which too many wait, and no other', async () => {
  const { join, begunNow } = queueOf(1, 1);
  const first = join('a', 'a1')!;
  join('a', 'a2');
  expect(join('a', 'a3')).toBeUndefined();
  expect(join('b', 'b1')).toBeDefined();
  first.leave();
  expect(join('a', 'a4')).toBeDefined();
  expect(await begunNow()).toEqual(['a1', 'b1', 'a2']);
});

it('applies a limit that has changed when one has ended', async () => {
  const { join, begunNow, setLimit } = queueOf(3, 9);
  const [a1, a2, a3] = ['a1', 'a2', 'a3'].map((name) => join('a', name)!);
  for (const name of ['a4', 'a5', 'a6']) join('a', name);
  setLimit(1);
  a1!.leave();
  a2!.leave();
  expect(await begunNow()).toEqual(['a1', 'a2', 'a3']);
  setLimit(2);
  a3!.leave();
  expect(await begunNow()).toEqual(['a1', 'a2', 'a3', 'a4', 'a5']);
});
