import { describe, expect, it } from '@jest/globals';
import { Invalid } from './errors.js';

describe('the report of a malformed request', () => {
  it('lists ten problems and the number of the others', () => {
    const invalid = new Invalid(Array.from({ length: 130_000 }, (_, n) => ({ field: `f${n}`, message: `f${n} is unknown` })));
    expect(invalid.details.errors).toHaveLength(10);
    expect(invalid.message).toMatch(/^f0 is unknown; .*; f9 is unknown; and 129990 more$/);
  });

  it('shortens the names and values that it repeats', () => {
    const invalid = new Invalid([{ field: 'x'.repeat(60_000), message: `${'x'.repeat(60_000)} is unknown` }]);
    expect(invalid.details.errors).toEqual([{ field: `${'x'.repeat(255)}…`, message: `${'x'.repeat(1023)}…` }]);
  });

  it('lists the first problem of each bad event of a batch, and says the first ten', () => {
    const problems = Array.from({ length: 60 }, (_, n) => ({ field: `f${n}`, message: `f${n} is bad`, index: Math.floor(n / 3) }));
    const { message, details } = new Invalid(problems);
    const listed = details.errors!.map(({ index, field }) => [index, field]);
    expect(listed.slice(0, 10)).toEqual(problems.slice(0, 10).map(({ index, field }) => [index, field]));
    expect(listed.slice(10)).toEqual(Array.from({ length: 16 }, (_, n) => [n + 4, `f${(n + 4) * 3}`]));
    expect(message).toMatch(/^f0 is bad; .*; f9 is bad; and 50 more$/);
  });

  it('keeps the index of an event in a batch', () =>
    expect(new Invalid([{ field: 'id', message: 'bad', index: 3 }]).details.errors).toEqual([{ field: 'id', message: 'bad', index: 3 }]));
});
