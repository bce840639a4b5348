import { describe, expect, it, jest } from '@jest/globals';
import { MUTANTS } from './mutants-for-tests.js';
import { simulate } from './simulation-for-tests.js';

/** `SIMULATION_SEEDS=500 npm test -- simulation` looks further. */
const SEEDS = Number(process.env.SIMULATION_SEEDS ?? 8);
const FIRST_SEED = Number(process.env.SIMULATION_FIRST_SEED ?? 1);
const seeds = Array.from({ length: SEEDS }, (_, index) => FIRST_SEED + index);
/** A mutant that this many runs don't notice lives. */
const TRIES = 60;

jest.setTimeout(300_000);

describe('delivering', () => {
  it.each(seeds)('delivers each event once and in order, beside endpoints that fail and hang (seed %i)', async (seed) => {
    const { problems } = await simulate({ seed, calm: true });
    expect(problems).toEqual([]);
  });

  it.each(seeds)('loses nothing and keeps the order, whatever crashes (seed %i)', async (seed) => {
    const { problems } = await simulate({ seed });
    expect(problems).toEqual([]);
  });

  it('is the same for the same seed', async () => {
    expect(await simulate({ seed: 1 })).toEqual(await simulate({ seed: 1 }));
  });
});

describe('the simulation', () => {
  it.each(MUTANTS.map((mutant) => ({ mutant, name: mutant.name })))('notices when $name', async ({ mutant }) => {
    for (let seed = 1; seed <= TRIES; seed++) {
      const { problems } = await simulate({ seed, mutant, calm: seed % 2 === 0 });
      if (problems.length > 0) return;
    }
    throw new Error(`nothing was wrong in ${TRIES} runs`);
  });
});
