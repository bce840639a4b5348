import { describe, expect, it } from '@jest/globals';
import { contention } from './contention.js';
import { Pace } from './pace.js';

const TICK_MS = 200;
/** The most that the machine can do, in units per second. */
const CAPACITY = 400;

/** How short of processors a machine of two is, by its load. */
const contentionOf = (busy: number): number => 0.3 * busy ** 4;

/** A machine on which each account asks for this many units per second and waits for its turn. Returns the units that began, and the longest waits. */
function simulate(demands: Record<string, number>, { seconds, capacity = CAPACITY }: { seconds: number; capacity?: number }) {
  const pace = new Pace();
  const done: Record<string, number> = {};
  const waits: Record<string, number> = {};
  let saturated = 0;
  for (let now = 0; now < seconds * 1000; now += TICK_MS) {
    let units = 0;
    for (const [account, demand] of Object.entries(demands)) {
      for (let at = now; at < now + TICK_MS;) {
        const wait = pace.admit(account, 1, at);
        waits[account] = Math.max(waits[account] ?? 0, wait);
        at += Math.max(wait, 1000 / demand);
        if (wait >= TICK_MS) break;
        units += 1;
        if (now >= (seconds * 1000) / 2) done[account] = (done[account] ?? 0) + 1;
      }
    }
    const busy = Math.min(1, (units / TICK_MS) * (1000 / capacity));
    if (busy > 0.95 && now >= (seconds * 1000) / 2) saturated += TICK_MS;
    pace.adjust(contentionOf(busy), now + TICK_MS);
  }
  const perSecond = Object.fromEntries(Object.entries(done).map(([account, count]) => [account, count / (seconds / 2)]));
  return { perSecond, waits, saturated: saturated / ((seconds * 1000) / 2) };
}

describe('the pace of accounts', () => {
  it('is not limited while the machine has time', () => {
    const { waits } = simulate({ a: 50, b: 150 }, { seconds: 20 });
    expect(waits).toEqual({ a: 0, b: 0 });
  });

  it('is not limited for an account that is alone, even if the machine is saturated', () => {
    const { waits, perSecond } = simulate({ a: 1000 }, { seconds: 20 });
    expect(waits).toEqual({ a: 0 });
    expect(perSecond.a).toBeGreaterThan(900);
  });

  it('is lower for the account that saturates the machine, and not for the others', () => {
    const { waits, perSecond, saturated } = simulate({ bad: 1000, good: 20, other: 5 }, { seconds: 60 });
    expect([waits.good, waits.other]).toEqual([0, 0]);
    expect(perSecond.good).toBeGreaterThan(19);
    expect(perSecond.bad).toBeGreaterThan(0.4 * CAPACITY);
    expect(saturated).toBeLessThan(0.25);
  });

  it('is at least 50 units per second, even if others saturate the machine', () => {
    expect(simulate({ bad: 1000, good: 10 }, { seconds: 60, capacity: 5 }).perSecond.bad).toBeGreaterThan(40);
  });

  it('is not limited for accounts that are about as fast as the others', () => {
    const { waits } = simulate({ a: 500, b: 700, c: 400 }, { seconds: 60 });
    expect(waits).toEqual({ a: 0, b: 0, c: 0 });
  });

  it('is lower for all accounts that saturate the machine together, if there is another one', () => {
    const { waits, perSecond } = simulate({ bad: 600, worse: 600, good: 20 }, { seconds: 60 });
    expect(waits.good).toBe(0);
    expect([perSecond.bad! < 300, perSecond.worse! < 300]).toEqual([true, true]);
  });

  it('is not limited for an account that uses a part of the machine, although something else saturates it', () => {
    const pace = new Pace();
    for (let now = 0; now <= 20_000; now += TICK_MS) {
      pace.admit('quiet', 0.1, now);
      for (let n = 0; n < 40; n++) expect(pace.admit('moderate', 1, now)).toBe(0);
      pace.adjust(1, now);
    }
  });

  it('becomes free again for an account that uses a part of the machine, after a moment in which it used more', () => {
    const pace = new Pace();
    let waited = 0;
    for (let now = 0; now <= 20_000; now += TICK_MS) {
      pace.admit('quiet', 0.1, now);
      for (let n = 0; n < (now < 1000 ? 200 : 30); n++) if (pace.admit('moderate', 1, now) > TICK_MS) waited = now;
      pace.adjust(1, now);
    }
    expect(waited).toBeGreaterThan(500);
    expect(waited).toBeLessThan(8000);
  });

  it('is at most its part for an account that sends as much as it may', () => {
    const pace = new Pace();
    let [begun, nextAt] = [0, 0];
    for (let now = 0; now <= 60_000; now += TICK_MS) {
      pace.admit('quiet', 0.1, now);
      // one request after the other
      for (; nextAt <= now; nextAt += pace.admit('greedy', 1, nextAt) + 0.5) begun += now > 30_000 ? 1 : 0;
      pace.adjust(1, now);
    }
    expect(begun / 30).toBeLessThan(210);
  });

  it('is lower beside an account that has little to do', () => {
    expect(simulate({ bad: 1000, quiet: 0.25 }, { seconds: 60 }).saturated).toBeLessThan(0.25);
  });

  it('is not higher because an account claims a huge cost', () => {
    const pace = new Pace();
    for (let now = 0; now <= 4000; now += TICK_MS) {
      for (let n = 0; n < 200; n++) pace.admit('bad', 1, now);
      pace.admit('helper', 1e7, now);
      pace.admit('good', 4, now);
      pace.adjust(0.9, now);
    }
    expect(pace.wait('bad', 4000)).toBeGreaterThan(0);
    expect(pace.wait('good', 4000)).toBe(0);
  });

  it('is at its lowest after a second in which the main thread was blocked', () => {
    const pace = new Pace();
    pace.adjust(0, 0);
    for (let n = 0; n < 1600; n++) pace.admit('bad', 1, 1000);
    pace.admit('good', 1, 1000);
    pace.adjust(1, 1000);
    pace.admit('bad', 1, 1000);
    expect(pace.wait('bad', 1000)).toBe(1000 / 50);
  });

  it('does not count an account as slower than nothing whose work has cost less than expected', () => {
    const pace = new Pace();
    for (let now = 0; now <= 2000; now += TICK_MS) {
      pace.admit('good', 0.01, now);
      pace.admit('refunded', -1000, now);
      pace.admit('bad', 100, now);
      pace.adjust(1, now);
    }
    expect(pace.wait('bad', 2000)).toBeGreaterThan(0);
    expect(pace.wait('good', 2000)).toBe(0);
  });

  it('recovers when the machine has time again', () => {
    const pace = new Pace();
    const begin = (at: number) => {
      for (let n = 0; n < 100; n++) pace.admit('bad', 1, at);
      pace.admit('good', 1, at);
    };
    for (let now = 0; now <= 2000; now += TICK_MS) {
      begin(now);
      pace.adjust(1, now);
    }
    expect(pace.wait('bad', 2000)).toBeGreaterThan(0);
    for (let now = 2000; now <= 12_000; now += TICK_MS) {
      pace.admit('bad', 1, now);
      pace.adjust(0.3, now);
    }
    expect(pace.wait('bad', 12_000)).toBe(0);
    expect(pace.isIdle).toBe(false);
    for (let now = 12_000; now <= 43_000; now += TICK_MS) pace.adjust(0.1, now);
    expect(pace.isIdle).toBe(true);
  });

  it('counts what work has cost in addition', () => {
    const pace = new Pace();
    for (let now = 0; now <= 2000; now += TICK_MS) {
      pace.admit('crashes', 1, now);
      pace.admit('crashes', 200, now);
      pace.admit('good', 4, now);
      pace.adjust(1, now);
    }
    expect(pace.wait('crashes', 2000)).toBeGreaterThan(1000);
    expect(pace.wait('crashes', 2000)).toBeLessThanOrEqual(5000);
    expect(pace.wait('good', 2000)).toBe(0);
  });
});

it.each([
  ['nothing', 0, 0, 0],
  ['as much as it wants', 100, 0, 0],
  ['half of what it wants', 50, 50, 0.25],
  ['something all of the time', 180, 10, 1],
])('a thread that does %s is short of processors by the share of the time that it waits', (_, ran, waited, expected) => {
  expect(contention({ ran, waited }, 200)).toBe(expected);
});
