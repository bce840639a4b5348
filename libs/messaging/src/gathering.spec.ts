import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Gathering } from './gathering.js';

const MS = 20;
/** As kafkajs makes them: a method that needs its object. */
class FakeBatch {
  constructor(
    private readonly last: number,
    private readonly end: number,
  ) {}
  get highWatermark(): string {
    return String(this.end);
  }
  lastOffset(): string {
    return String(this.last);
  }
}

describe('records gather', () => {
  let gathering: Gathering;
  beforeEach(() => {
    jest.useFakeTimers({ now: 1_000_000 });
    jest.advanceTimersByTime(MS);
    gathering = new Gathering(MS);
  });
  afterEach(() => void jest.useRealTimers());
  /** How long it rests, in ms. */
  const rest = async (last: number, highWatermark: number): Promise<number> => {
    const start = performance.now();
    const resting = gathering.rest(new FakeBatch(last, highWatermark));
    jest.runAllTimers();
    await resting;
    return performance.now() - start;
  };

  it('at the end of the log, once for all partitions of a fetch', async () => {
    expect([await rest(9, 10), await rest(4, 5), await rest(0, 1)]).toEqual([MS, 0, 0]);
    jest.advanceTimersByTime(MS);
    expect(await rest(10, 11)).toBe(MS);
  });

  it('not where more is to be had already', async () => {
    expect(await rest(8, 10)).toBe(0);
  });
});
