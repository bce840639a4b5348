import { expect, it } from '@jest/globals';
import { secondsToReset } from './quotas.js';

it.each([
  ['2026-01-01T00:00:00.000Z', 86_400],
  ['2026-01-01T23:59:58.999Z', 2],
  ['2026-01-01T23:59:59.999Z', 1],
])('resets quotas at midnight: at %s in %i seconds', (now, seconds) => expect(secondsToReset(Date.parse(now))).toBe(seconds));
