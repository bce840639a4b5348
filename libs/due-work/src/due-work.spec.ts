import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Session } from '#database';
import { createLog } from '#observability';
import { DueRows, DueWork } from './due-work.js';

const BATCH = 2;

class Rows extends DueRows {
  /** When rows are due, in ms since the start. */
  due: number[] = [];
  looks = 0;

  async msToNext(): Promise<number | null> {
    this.looks++;
    return this.due.length === 0 ? null : Math.min(...this.due) - performance.now();
  }

  /** As this process does it. */
  write(inMs: number): void {
    this.due.push(performance.now() + inMs);
    this.scheduled({} as Session, inMs);
  }
}

let rows: Rows;
let work: Work;
/** When each batch was handled, in ms since the start, and how many rows it had. */
let handled: [at: number, count: number][];
let fails: boolean;

class Work extends DueWork {
  constructor() {
    super(rows, createLog('test', 'silent'), { batch: BATCH, failure: 'work.interrupted' });
  }

  async handleDue(): Promise<number> {
    if (fails) throw new Error('the database is down');
    const due = rows.due
      .filter((at) => at <= performance.now())
      .sort((a, b) => a - b)
      .slice(0, BATCH);
    rows.due = rows.due.filter((at) => !due.includes(at));
    handled.push([Math.round(performance.now()), due.length]);
    return due.length;
  }
}

/** Starts the work, and lets this much time pass. */
async function run(ms: number): Promise<void> {
  work.onApplicationBootstrap();
  await jest.advanceTimersByTimeAsync(ms);
}

beforeEach(() => {
  jest.useFakeTimers({ now: 0 });
  rows = new Rows();
  work = new Work();
  handled = [];
  fails = false;
});
afterEach(async () => {
  await work.beforeApplicationShutdown();
  jest.useRealTimers();
});

describe('work that becomes due', () => {
  it('is looked for every 2.4 to 3 seconds while there is none', async () => {
    await run(20_000);
    expect(rows.looks).toBeGreaterThanOrEqual(7);
    expect(rows.looks).toBeLessThanOrEqual(9);
    expect(handled).toEqual([]);
  });

  it('is handled when it is due', async () => {
    const start = performance.now();
    rows.due = [start + 300, start + 2500];
    await run(5000);
    expect(handled.map(([at, count]) => [at - Math.round(start), count])).toEqual([
      [300, 1],
      [2500, 1],
    ]);
  });

  it('is handled when it is due, also if this process writes it later', async () => {
    await run(1500);
    const at = Math.round(performance.now());
    rows.write(200);
    await jest.advanceTimersByTimeAsync(1000);
    expect(handled).toEqual([[at + 200, 1]]);
  });

  it('is handled together if it is due at about the same time', async () => {
    await run(1500);
    rows.write(0);
    await jest.advanceTimersByTimeAsync(1);
    rows.write(10);
    rows.write(20);
    await jest.advanceTimersByTimeAsync(500);
    expect(handled.map(([, count]) => count)).toEqual([1, 2]);
  });

  it('is handled in batches that follow each other without a pause', async () => {
    rows.due = [-3, -2, -1, 0];
    await run(1);
    expect(handled.map(([, count]) => count)).toEqual([2, 2]);
  });

  it('is tried again a second after a failure', async () => {
    fails = true;
    rows.due = [0];
    await run(900);
    fails = false;
    expect(handled).toEqual([]);
    await jest.advanceTimersByTimeAsync(200);
    expect(handled).toMatchObject([[expect.any(Number), 1]]);
  });

  it('is not waited for when the process stops', async () => {
    await run(100);
    await work.beforeApplicationShutdown();
    const { looks } = rows;
    await jest.advanceTimersByTimeAsync(5000);
    expect(rows.looks).toBe(looks);
  });
});
