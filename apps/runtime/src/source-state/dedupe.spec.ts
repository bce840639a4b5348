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

  it('greatest compares with what was greatest before the run', () => {
    expect(run('greatest', { greatest: 5 }, '7', '5', '6', '4')).toEqual({ ids: ['7', '6'], state: { greatest: 7 }, refused: 0 });
    expect(run('greatest', {}, '-3', '-5')).toEqual({ ids: ['-3', '-5'], state: { greatest: -3 }, refused: 0 });
    expect(run('greatest', { greatest: 7 }, '3').state).toEqual({ greatest: 7 });
  });
  it('greatest compares numbers, not texts', () => expect(run('greatest', { greatest: 9 }, '10').ids).toEqual(['10']));

  it('last lets through what comes after the id emitted last, or all when it is not there', () => {
    expect(run('last', { last: 'b' }, 'a', 'b', 'c', 'd')).toEqual({ ids: ['c', 'd'], state: { last: 'd' }, refused: 0 });
    expect(run('last', { last: 'z' }, 'a', 'b')).toEqual({ ids: ['a', 'b'], state: { last: 'b' }, refused: 0 });
    expect(run('last', { last: 'b' }, 'a', 'b')).toEqual({ ids: [], state: { last: 'b' }, refused: 0 });
    expect(run('last', {}, 'a').ids).toEqual(['a']);
  });

  it.each(['unique', 'greatest', 'last'] as const)('%s refuses an emit without an id, and reports it', (strategy) => {
    expect(run(strategy, {}, '1', undefined)).toMatchObject({ ids: ['1'], refused: 1 });
  });
  it('greatest refuses an id that is not a number', () => expect(run('greatest', {}, 'x', '1')).toMatchObject({ ids: ['1'], refused: 1 }));

  it('sorts the emits of a run by ts first, stably', () => {
    const result = dedupe(
      [
        { event: '"c"', ts: 3 },
        { event: '"a"', ts: 1 },
        { event: '"c2"', ts: 3 },
        { event: '"b"', ts: 2 },
      ],
      null,
      {},
    );
    expect(result.emits.map(({ event }) => event)).toEqual(['"a"', '"b"', '"c"', '"c2"']);
  });
});
