import { describe, expect, it } from '@jest/globals';
import { Breaker } from './breaker.js';

const failing = (count: number, { timeout = false, again = false, same = false } = {}) => {
  const breaker = new Breaker();
  for (let n = 0; n < count; n++) breaker.failedWith({ eventId: same ? 'one' : String(n), timeout, again });
  return breaker;
};

describe('a breaker', () => {
  it.each([
    ['opens after five events that fail', failing(5), true],
    ['stays closed after four', failing(4), false],
    ['stays closed when one event fails time and again', failing(50, { same: true }), false],
    ['opens after two time-outs', failing(2, { timeout: true }), true],
    ['opens when one event times out twice', failing(2, { timeout: true, same: true }), true],
    ['stays closed after one', failing(1, { timeout: true }), false],
    ['bears more from events that have failed before', failing(19, { again: true }), false],
    ['but not everything', failing(20, { again: true }), true],
  ])('%s', (_, breaker, open) => {
    expect(breaker.open).toBe(open);
  });

  it('starts again after the first success', () => {
    const breaker = failing(4, { timeout: false });
    expect(breaker.untroubled).toBe(false);
    breaker.reset();
    expect(breaker.untroubled).toBe(true);
    breaker.failedWith({ eventId: 'x', timeout: true, again: false });
    expect(breaker.open).toBe(false);
  });
});
