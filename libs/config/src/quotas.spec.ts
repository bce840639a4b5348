import { expect, it } from '@jest/globals';
import { secondsToReset } from './quotas.js';

it.each([
  ['2026-01-01T00:00:02.000Z', 86_400],
  ['2026-01-01T12:00:00.000Z', 43_202],
  ['2026-01-01T23:59:58.999Z', 4],
  ['2026-01-01T23:59:59.999Z', 3],
  ['2026-01-02T00:00:00.200Z', 2],
  ['2026-01-02T00:00:01.999Z', 1],
])('resets quotas two seconds after midnight: at %s in %i seconds', (now, seconds) =>
  expect(secondsToReset(Date.parse(now))).toBe(seconds),
);
