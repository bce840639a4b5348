import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { UserId } from '#contracts';
import { AccountPace } from './account-pace.js';
import { Contention } from './contention.js';

const BUSY = 'u_busy' as UserId;
const OTHER = 'u_other' as UserId;

let pace: AccountPace;

/** Both accounts are active on a saturated machine, one of them much more. */
async function saturate(units = 1000): Promise<void> {
  for (let n = 0; n < 10; n++) {
    pace.spend(BUSY, units);
    pace.spend(OTHER, 1);
    await jest.advanceTimersByTimeAsync(200);
  }
}

/** The machine is saturated while this count grows. */
function saturateBy(count: () => number): void {
  let before = 0;
  jest.mocked(Contention.prototype.sample).mockImplementation(() => {
    const contention = count() > before ? 1 : 0;
    before = count();
    return contention;
  });
}

/** How long this many requests, sent at once, wait, in ms; false for those that are refused. */
async function waits(count: number, units: number): Promise<(number | false)[]> {
  const start = performance.now();
  const turns = Array.from({ length: count }, async () => (await pace.requestTurn(BUSY, units)) && Math.round(performance.now() - start));
  await jest.advanceTimersByTimeAsync(5000);
  return Promise.all(turns);
}

beforeEach(() => {
  jest.useFakeTimers();
  jest.spyOn(Contention.prototype, 'sample').mockReturnValue(1);
  pace = new AccountPace();
});

afterEach(() => {
  pace.onApplicationShutdown();
  jest.restoreAllMocks();
  jest.useRealTimers();
});

describe('a request', () => {
  it('does not wait on a machine that is not saturated', async () => {
    jest.mocked(Contention.prototype.sample).mockReturnValue(0);
    await saturate();
    expect(await waits(100, 100)).toEqual(Array(100).fill(0));
  });

  it('waits for its turn while its account does more than others', async () => {
    // a little more than its part
    await saturate(41);
    const [first, ...others] = await waits(10, 1);
    expect(first).toBeGreaterThan(0);
    expect(others.at(-1)).toBeGreaterThan(first as number);
  });

  it('is never refused to a client that waits for its responses, however large its requests are', async () => {
    for (let n = 0; n < 20; n++) {
      await saturate();
      const [wait] = await waits(1, 10_000);
      expect(wait).not.toBe(false);
      expect(wait).toBeLessThanOrEqual(2000);
    }
  });

  it('a request that is limited in another way waits for two seconds at most, and is never refused', async () => {
    await saturate();
    const start = performance.now();
    const waits = Promise.all(Array.from({ length: 200 }, () => pace.delayRequest(BUSY, 10).then(() => performance.now() - start)));
    await jest.advanceTimersByTimeAsync(5000);
    const longest = Math.max(...(await waits));
    expect(longest).toBeGreaterThan(1900);
    expect(longest).toBeLessThanOrEqual(2001);
  });

  it('is refused while large ones that cost a hundred units together wait', async () => {
    await saturate();
    const all = await waits(30, 10);
    expect(all.slice(0, 10)).not.toContain(false);
    expect(all.slice(10)).toEqual(Array(20).fill(false));
  });

  it('is refused while others wait that will cost a hundred units, as the last ones did', async () => {
    await saturate();
    for (let n = 0; n < 20; n++) pace.spendOn('request', BUSY, 160);
    const [first, ...others] = await waits(10, 1);
    expect(first).toBeLessThanOrEqual(2000);
    expect(others).toEqual(Array(9).fill(false));
    await jest.advanceTimersByTimeAsync(6000);
    expect(await waits(10, 1)).not.toContain(false);
  });

  it('a request that takes 160 ms of the main thread is handled about once per second beside another account, however many come', async () => {
    let handled = 0;
    saturateBy(() => handled);
    const client = async () => {
      if (!(await pace.requestTurn(BUSY, 1))) return;
      handled++;
      pace.spendOn('request', BUSY, 160);
    };
    let first = 0;
    for (let at = 0; at < 60_000; at += 50) {
      void client();
      pace.spend(OTHER, 0.5);
      if (at === 10_000) first = handled;
      await jest.advanceTimersByTimeAsync(50);
    }
    expect((handled - first) / 50).toBeLessThan(1.5);
    expect((handled - first) / 50).toBeGreaterThan(0.3);
  });

  it('is refused while a hundred others of its account wait, and its turn would not come within two seconds', async () => {
    await saturate();
    const all = await waits(200, 1);
    expect(all.slice(0, 100)).not.toContain(false);
    expect(all.slice(100)).toEqual(Array(100).fill(false));
    expect(await waits(1, 1)).not.toContain(false);
  });
});

describe('a run', () => {
  it('a run that takes 500 ms of the main thread is handled less than once per second beside another account, however many proceed at a time', async () => {
    let handled = 0;
    saturateBy(() => handled);
    let isOver = false;
    const lane = async () => {
      while (!isOver) {
        await pace.runTurn(BUSY, 1);
        await new Promise((resolve) => setTimeout(resolve, 100));
        handled++;
        pace.spendOn('run', BUSY, 500);
      }
    };
    for (let n = 0; n < 8; n++) void lane();
    let first = 0;
    for (let at = 0; at < 120_000; at += 50) {
      pace.spend(OTHER, 0.5);
      if (at === 20_000) first = handled;
      await jest.advanceTimersByTimeAsync(50);
    }
    isOver = true;
    expect((handled - first) / 100).toBeLessThan(1);
    expect((handled - first) / 100).toBeGreaterThan(0.1);
  });
});
