import { expect, it } from '@jest/globals';
import { type Attempt, keptAttempts } from './delivery.js';

const attemptAt = (ts: number): Attempt => ({ ts, status_code: 500, duration_ms: 1, error: null, response_body: `no ${ts}` });
const attempts = (count: number): Attempt[] => Array.from({ length: count }, (_, n) => attemptAt(n));

it.each([
  [1, ['no 0']],
  [3, ['no 0', 'no 1', 'no 2']],
  [5, [null, null, 'no 2', 'no 3', 'no 4']],
  [25, [...Array(17).fill(null), 'no 22', 'no 23', 'no 24']],
])('the newest 20 of %i attempts are stored, and the last three responses', (count, bodies) => {
  const kept = keptAttempts(attempts(count));
  expect(kept.map(({ response_body }) => response_body)).toEqual(bodies);
  expect(kept.map(({ ts }) => ts)).toEqual(
    attempts(count)
      .slice(-20)
      .map(({ ts }) => ts),
  );
});
