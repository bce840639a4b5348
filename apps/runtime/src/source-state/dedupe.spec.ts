import { cpuSeconds } from '#testing';
import { describe, expect, it } from '@jest/globals';
import type { DedupeStrategy, Emit } from '../sandbox/sandbox.js';
import { dedupe, type DedupeState } from './dedupe.js';

const emits = (...ids: (string | undefined)[]): Emit[] => ids.map((id) => ({ event: '1', id }));
const run = (strategy: DedupeStrategy | null, state: DedupeState, ...ids: (string | undefined)[]) => {
  const result = dedupe(emits(...ids), strategy, state);
  return { ids: result.emits.map(({ id }) => id), state: result.state, refused: result.refused.length };
};

describe('dedupe', () => {
  it('without a strategy lets everything through', () => expect(run(null, {}, 'a', 'a', undefined).ids).toEqual(['a', 'a', undefined]));

  it('unique drops ids that were emitted before, in this run too', () => {
    expect(run('unique', { ids: ['a'] }, 'b', 'a', 'b', 'c')).toEqual({ ids: ['b', 'c'], state: { ids: ['a', 'b', 'c'] }, refused: 0 });
  });
  it('unique remembers the last 100 ids', () => {
    const ids = Array.from({ length: 100 }, (_, n) => String(n));
    const { state } = run('unique', { ids }, '100');
    expect(state.ids).toHaveLength(100);
    expect(run('unique', state, '0', '2').ids).toEqual(['0']);
  });

  it('shows the beginning of an id that is not numeric', () => {
    const { refused } = dedupe(emits('x'.repeat(4096)), 'greatest', {});
    expect(refused[0]?.reason).toBe(`dedupe "greatest" requires numeric ids, not "${'x'.repeat(100)}…"`);
  });

  it.each(['unique', 'greatest'] as const)('%s takes little time for a thousand long ids that begin equally', async (strategy) => {
    const ids = Array.from({ length: 1000 }, (_, n) => Buffer.from(`${'x'.repeat(4090)}${n}`).toString());
    const runs = () => Array.from({ length: 50 }, () => run(strategy, {}, ...ids));
    expect(await cpuSeconds(runs)).toBeLessThan(1.5);
  });

  it('greatest compares with what was greatest before the run', () => {
    expect(run('greatest', { greatest: 5 }, '7', '5', '6', '4')).toEqual({ ids: ['7', '6'], state: { greatest: 7 }, refused: 0 });
    expect(run('greatest', {}, '-3', '-5')).toEqual({ ids: ['-3', '-5'], state: { greatest: -3 }, refused: 0 });
    expect(run('greatest', { greatest: 7 }, '3').state).toEqual({ greatest: 7 });
  });
  it('greatest compares numbers, not texts', () => expect(run('greatest', { greatest: 9 }, '10').ids).toEqual(['10']));

  const big = 2n ** 63n;
  it.each<[string, DedupeState['greatest'], string[], string[], DedupeState['greatest']]>([
    ['that differ above 2^53', `${big}`, [`${big}`, `${big + 1n}`, `${big - 1n}`], [`${big + 1n}`], `${big + 1n}`],
    [
      'with the number that an earlier version stored',
      2 ** 53,
      [`${2 ** 53}`, '9007199254740993'],
      ['9007199254740993'],
      '9007199254740993',
    ],
    ['with signs and spaces', -3, [' +7 ', '-4'], [' +7 '], 7],
    ['with a fraction or an exponent', 9, ['9.5', '10', '9.4', '1e3', '8.9'], ['9.5', '10', '9.4', '1e3'], 1000],
    ['with a fraction beside large integers', `${big}`, ['9.5', '1e30', `${big + 1n}`], ['1e30', `${big + 1n}`], 1e30],
  ])('greatest compares ids %s', (_, before, ids, fresh, greatest) => {
    const { state, ...rest } = run('greatest', { greatest: before }, ...ids);
    expect(rest).toEqual({ ids: fresh, refused: 0 });
    expect(JSON.parse(JSON.stringify(state))).toEqual({ greatest });
  });

  it('last lets through what comes after the id emitted last, or all when it is not there', () => {
    expect(run('last', { last: 'b' }, 'a', 'b', 'c', 'd')).toEqual({ ids: ['c', 'd'], state: { last: 'd' }, refused: 0 });
    expect(run('last', { last: 'z' }, 'a', 'b')).toEqual({ ids: ['a', 'b'], state: { last: 'b' }, refused: 0 });
    expect(run('last', { last: 'b' }, 'a', 'b')).toEqual({ ids: [], state: { last: 'b' }, refused: 0 });
    expect(run('last', {}, 'a').ids).toEqual(['a']);
  });

  it.each(['unique', 'greatest', 'last'] as const)('%s keeps what the other strategies know', (strategy) => {
    const before = { ids: ['1'], greatest: 1, last: '1' };
    const { state } = run(strategy, before, '2');
    const own = { unique: { ids: ['1', '2'] }, greatest: { greatest: 2 }, last: { last: '2' } };
    expect(state).toEqual({ ...before, ...own[strategy] });
  });

  it.each(['unique', 'greatest', 'last'] as const)('%s refuses an emit without an id, and reports it', (strategy) => {
    expect(run(strategy, {}, '1', undefined)).toMatchObject({ ids: ['1'], refused: 1 });
  });
  it.each(['x', ' ', 'Infinity', '9'.repeat(4000)])('greatest refuses an id that is not a finite number: %.10s', (id) =>
    expect(run('greatest', {}, id, '1')).toMatchObject({ ids: ['1'], refused: 1 }),
  );

  it.each<[string, (number | undefined)[], string]>([
    ['by ts', [3, 1, 2], 'b c a'],
    ['stably', [3, 1, 3, 1], 'b d a c'],
    ['in the order of the calls if no emit has a ts', [undefined, undefined], 'a b'],
    ['around the emits without a ts, which keep their positions', [3, undefined, 1], 'c b a'],
    ['whatever the number of emits without a ts', [undefined, 2, undefined, 3, undefined, 1], 'a f c b e d'],
  ])('sorts the emits of a run %s', (_, times, expected) => {
    const given = times.map((ts, index) => ({ event: 'abcdef'[index]!, ts }));
    expect(
      dedupe(given, null, {})
        .emits.map(({ event }) => event)
        .join(' '),
    ).toBe(expected);
  });
});
