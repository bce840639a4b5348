import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Turns } from './turns.js';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

describe('turns', () => {
  it('come at once, until a second of them is used', () => {
    const turns = new Turns(100);
    let begun = 0;
    for (let n = 0; n < 150; n++) turns.take(() => begun++);
    expect(begun).toBe(100);
  });

  it('come in order at their rate after that', async () => {
    const turns = new Turns(100);
    const begun: number[] = [];
    for (let n = 0; n < 400; n++) turns.take(() => begun.push(n));
    await jest.advanceTimersByTimeAsync(1000);
    expect(begun.length).toBeGreaterThan(190);
    expect(begun.length).toBeLessThanOrEqual(200);
    await jest.advanceTimersByTimeAsync(5000);
    expect(begun).toEqual(Array.from({ length: 400 }, (_, n) => n));
    expect(jest.getTimerCount()).toBe(0);
  });

  it('are not collected for longer than a second', async () => {
    const turns = new Turns(100);
    await jest.advanceTimersByTimeAsync(60_000);
    let begun = 0;
    for (let n = 0; n < 500; n++) turns.take(() => begun++);
    expect(begun).toBe(100);
  });
});
