import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { SpareTime } from './log-reader.js';

/** The share of the time in which the event loop does other work. */
let busy: number;
let spare: SpareTime;
beforeEach(() => {
  jest.useFakeTimers({ now: 0 });
  let [at, active, idle] = [performance.now(), 0, 0];
  spare = new SpareTime(() => {
    const elapsed = performance.now() - at;
    [at, active, idle] = [at + elapsed, active + elapsed * busy, idle + elapsed * (1 - busy)];
    return { active, idle };
  });
});
afterEach(() => void jest.useRealTimers());

/** How long a step waits, in ms. */
async function waited(): Promise<number> {
  const start = performance.now();
  const turn = spare.next().then(() => performance.now() - start);
  await jest.advanceTimersByTimeAsync(1000);
  return turn;
}

describe('a step of work in spare time', () => {
  it.each([
    ['for a moment if there is nothing else to do', 0, 5],
    ['for a moment while the event loop rests half of the time', 0.5, 5],
    ['for a tenth of a second while the event loop is busy', 0.9, 100],
  ])('waits %s', async (_, share, expected) => {
    busy = share;
    expect(await waited()).toBe(expected);
  });

  it('waits until the event loop has rested for as long as it was busy', async () => {
    busy = 1;
    const [start, turn] = [performance.now(), spare.next().then(() => performance.now())];
    await jest.advanceTimersByTimeAsync(20);
    busy = 0;
    await jest.advanceTimersByTimeAsync(1000);
    expect((await turn) - start).toBe(40);
  });

  it('waits for the steps that came before it', async () => {
    busy = 0;
    const begun: number[] = [];
    for (const step of [1, 2, 3]) void spare.next().then(() => begun.push(step));
    await jest.advanceTimersByTimeAsync(5);
    expect(begun).toEqual([1]);
    await jest.advanceTimersByTimeAsync(10);
    expect(begun).toEqual([1, 2, 3]);
  });
});
