import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import type { Log } from '#observability';
import { CannotStart } from './explain.js';
import { waitFor } from './stores.js';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const lines: string[] = [];
const log = { info: (_: object, line: string) => void lines.push(line) } as unknown as Log;

/** Lets the timers run until the promise has settled. */
async function settled<T>(promise: Promise<T>): Promise<T> {
  let done = false;
  void promise.then(
    () => (done = true),
    () => (done = true),
  );
  while (!done) await jest.advanceTimersByTimeAsync(100);
  return promise;
}

it('resolves once there is nothing to wait for', async () => {
  const reasons: (string | undefined)[] = ['away', 'away', undefined];
  await settled(waitFor({ name: 'Kafka', deadline: performance.now() + 10_000, log, check: async () => reasons.shift() }));
  expect(reasons).toEqual([]);
});

it('logs every ten seconds what it waits for, and at the deadline gives up with the last reason', async () => {
  lines.length = 0;
  const waiting = settled(waitFor({ name: 'Kafka', deadline: performance.now() + 25_000, log, check: async () => 'away' }));
  await expect(waiting).rejects.toThrow(new CannotStart('gave up waiting for Kafka: away'));
  expect(lines).toEqual(['waiting for Kafka', 'waiting for Kafka', 'waiting for Kafka']);
});

it('does not give up earlier if the clock is corrected', async () => {
  let checks = 0;
  const check = async () => {
    jest.setSystemTime(Date.now() + 3_600_000);
    return ++checks === 3 ? undefined : 'away';
  };
  await settled(waitFor({ name: 'Kafka', deadline: performance.now() + 10_000, log, check }));
  expect(checks).toBe(3);
});

it('rejects at once when waiting does not help', async () => {
  const check = async () => {
    throw new CannotStart('wrong password');
  };
  await expect(settled(waitFor({ name: 'Kafka', deadline: performance.now() + 10_000, log, check }))).rejects.toThrow('wrong password');
});

it('gives up at the deadline although a check hangs, and repeats a check only when it has ended', async () => {
  lines.length = 0;
  const deadline = performance.now() + 25_000;
  const hanging = Promise.withResolvers<string>();
  let checks = 0;
  const waiting = waitFor({
    ...{ name: 'PostgreSQL', deadline, log },
    check: () => (++checks === 2 ? Promise.resolve('away') : hanging.promise),
  });
  const failed = expect(settled(waiting)).rejects.toThrow(new CannotStart('gave up waiting for PostgreSQL: no response within 10 s'));
  await jest.advanceTimersByTimeAsync(11_000);
  expect([checks, lines]).toEqual([1, ['waiting for PostgreSQL']]);
  hanging.resolve('down');
  hanging.promise = new Promise(() => {});
  await failed;
  expect(checks).toBe(3);
  expect(performance.now()).toBeLessThan(deadline + 1000);
});

it('gives up with the last reason if the next check ends after the deadline', async () => {
  const deadline = performance.now() + 5000;
  let checks = 0;
  const check = () => (++checks === 1 ? Promise.resolve('away') : new Promise<string>(() => {}));
  const waiting = settled(waitFor({ name: 'Kafka', deadline, log, check }));
  await expect(waiting).rejects.toThrow(new CannotStart('gave up waiting for Kafka: away'));
  expect(performance.now()).toBeLessThan(deadline + 1000);
});
