import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { eachSecond } from './each-second.js';

describe('work of each second', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('shares one timer, which ends when nobody needs it any more', () => {
    const calls: string[] = [];
    const callAs = (name: string) => () => void calls.push(name);
    const endFirst = eachSecond(callAs('first'));
    jest.advanceTimersByTime(600);
    const endSecond = eachSecond(callAs('second'));
    expect(jest.getTimerCount()).toBe(1);
    jest.advanceTimersByTime(400);
    expect(calls).toEqual(['first', 'second']);
    endFirst();
    endFirst();
    jest.advanceTimersByTime(1000);
    expect(calls).toEqual(['first', 'second', 'second']);
    endSecond();
    expect(jest.getTimerCount()).toBe(0);
  });

  it('calls a function twice that was passed twice', () => {
    let calls = 0;
    const count = () => void (calls += 1);
    const ends = [eachSecond(count), eachSecond(count)];
    jest.advanceTimersByTime(1000);
    expect(calls).toBe(2);
    for (const end of ends) end();
  });
});
