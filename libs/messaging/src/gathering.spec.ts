import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Gathering } from './gathering.js';

const MS = 20;
/** Like the objects of kafkajs: a method that depends on its object. */
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

describe('a consumer', () => {
  let gathering: Gathering;
  beforeEach(() => {
    jest.useFakeTimers({ now: 1_000_000 });
    jest.advanceTimersByTime(MS);
    gathering = new Gathering(MS);
  });
  afterEach(() => void jest.useRealTimers());
  /** The length of the pause, in ms. */
  const rest = async (last: number, highWatermark: number): Promise<number> => {
    const start = performance.now();
    const resting = gathering.rest(new FakeBatch(last, highWatermark));
    jest.runAllTimers();
    await resting;
    return performance.now() - start;
  };

  it('pauses to gather records once for all partitions of a fetch at the end of the topic', async () => {
    expect([await rest(9, 10), await rest(4, 5), await rest(0, 1)]).toEqual([MS, 0, 0]);
    jest.advanceTimersByTime(5);
    expect(await rest(10, 11)).toBe(MS);
  });

  it('does not pause while more records are available', async () => {
    expect(await rest(8, 10)).toBe(0);
  });
});
