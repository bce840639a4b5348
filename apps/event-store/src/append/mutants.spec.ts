import { describe, it } from '@jest/globals';
import { type Mutant, playSimulation } from './simulation-for-tests.js';

/** A mutant that survives this many simulations is not detected. */
const TRIES = 150;

const fails = (seed: number, mutant: Mutant): Promise<boolean> =>
  playSimulation(seed, mutant).then(
    () => false,
    () => true,
  );

/** With the seed of a simulation that detects the mutant; it is tried first and saves the search. */
const MUTANTS: [mutant: Mutant, detectedBy: number][] = [
  ['position committed early', 1],
  ['fence left out', 2],
  ['deletion bounded by its time', 1],
  ['trim by count only', 1],
  ['no trim before a deletion', 4],
  ['repeats only skipped', 32],
  ['clock not kept', 1],
  ['log not identified', 5],
  ['late events not moved', 1],
  ['only events of the future moved', 15],
  ['silence ignored', 11],
  ['withdrawn before the commit', 1],
  ['surplus of $in withdrawn', 32],
  ['deletions before the events of their batch', 1],
  ['due event left in $in', 1],
];

describe('the simulation of the store', () => {
  it.each(MUTANTS)(
    'detects the mutant: %s',
    async (mutant, detectedBy) => {
      let seed = detectedBy;
      for (let tries = 1; !(await fails(seed, mutant)); tries++) {
        if (tries > TRIES) throw new Error(`${TRIES} simulations did not detect it`);
        seed = tries;
      }
    },
    120_000,
  );
});
