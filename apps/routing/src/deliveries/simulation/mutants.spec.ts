import { describe, it } from '@jest/globals';
import { MUTANTS } from './mutants-for-tests.js';
import { simulate } from './simulation-for-tests.js';

/** A mutant that survives this many simulations is not detected. */
const TRIES = 60;

describe('the simulation of deliveries', () => {
  it.each(MUTANTS.map((mutant) => ({ mutant, name: mutant.name })))(
    'detects the mutant: $name',
    async ({ mutant }) => {
      let seed = mutant.detectedBy;
      for (let tries = 1; (await simulate({ seed, mutant, calm: seed % 2 === 0 })).problems.length === 0; tries++) {
        if (tries > TRIES) throw new Error(`${TRIES} simulations did not detect it`);
        seed = tries;
      }
    },
    300_000,
  );
});
