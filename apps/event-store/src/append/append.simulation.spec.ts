import { expect, it } from '@jest/globals';
import { playSimulation } from './simulation-for-tests.js';

const RUNS = 12;
const FIRST_SEED = Number(process.env.SLUICE_SEED);

it('keeps the store equal to the log up to its position through crashes, rebalances and clocks that step back', async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + RUNS; seed++) {
    await playSimulation(seed).catch((error: Error) => {
      throw new Error(`SLUICE_SEED=${seed}: ${error.message}`, { cause: error });
    });
  }
  expect.hasAssertions();
}, 120_000);
