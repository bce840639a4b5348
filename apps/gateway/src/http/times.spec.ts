import { describe, expect, it } from '@jest/globals';
import { sinceMs } from './times.js';

describe('since', () => {
  it.each([
    ['0', 0],
    ['1700000000', 1_700_000_000_000],
    ['2026-01-31T12:00:00Z', Date.UTC(2026, 0, 31, 12)],
    ['2026-01-31T12:00:00.5+01:00', Date.UTC(2026, 0, 31, 11, 0, 0, 500)],
    ['2026-01-31', Date.UTC(2026, 0, 31)],
  ])('%s', (text, ms) => expect(sinceMs(text)).toBe(ms));
  it.each(['yesterday', '', '-5', '2026-13-01', '2026-01-31 12:00'])('%j is refused', (text) =>
    expect(() => sinceMs(text)).toThrow('since must be'),
  );
});
