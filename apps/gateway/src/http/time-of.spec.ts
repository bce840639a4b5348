import { describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { timeOf } from './time-of.js';

describe('a time', () => {
  it.each([
    ['0', 0],
    ['1700000000', 1_700_000_000_000],
    ['0.5', 500],
    ['17000000', 17_000_000_000],
    ['1700000000.5', 1_700_000_000_500],
    ['2026-01-31T12:00:00Z', Date.UTC(2026, 0, 31, 12)],
    ['2026-01-31T12:00:00.5+01:00', Date.UTC(2026, 0, 31, 11, 0, 0, 500)],
    ['2026-01-31T12:00-0500', Date.UTC(2026, 0, 31, 17)],
    ['2026-01-31', Date.UTC(2026, 0, 31)],
    ['2026-01-31T12:00', Date.UTC(2026, 0, 31, 12)],
    ['2026-01-31T12:00:01', Date.UTC(2026, 0, 31, 12, 0, 1)],
    ['2026-01-31T12:00:01.25', Date.UTC(2026, 0, 31, 12, 0, 1, 250)],
  ])('can be %s', (text, ms) => expect(timeOf(text)).toBe(ms));

  it.each([
    'yesterday',
    '',
    '-5',
    '01700000000',
    '00.5',
    '20260131',
    '2026',
    '2026-13-01',
    '2026-02-31',
    '2026-02-31T12:00Z',
    '2026-01-31 12:00',
    '2026-01-31Z',
    '2026-01-31T25:00',
  ])('cannot be %j', (text) => expect(timeOf(text)).toBeUndefined());

  it('without a zone is in UTC, also where the machine has another zone', () => {
    // Node reads TZ of the process, and the environment of a test is a copy
    const script = `import('./time-of.ts').then(({ timeOf }) => console.log(timeOf('2026-01-31T12:00'), new Date(0).getTimezoneOffset()))`;
    const env = { ...process.env, TZ: 'America/New_York' };
    const output = execFileSync(process.execPath, ['-e', script], { cwd: import.meta.dirname, env, encoding: 'utf8' });
    expect(output).toBe(`${Date.UTC(2026, 0, 31, 12)} 300\n`);
  });
});
