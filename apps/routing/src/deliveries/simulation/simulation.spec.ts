import { describe, expect, it } from '@jest/globals';
import { simulate } from './simulation-for-tests.js';

const RUNS = 4;
const FIRST_SEED = Number(process.env.SLUICE_SEED);
const seeds = Array.from({ length: RUNS }, (_, index) => FIRST_SEED + index);

describe('the simulation of deliveries', () => {
  it.each(seeds)(
    'delivers each event once and in order, beside endpoints that fail and hang (SLUICE_SEED=%i)',
    async (seed) => {
      const { problems } = await simulate({ seed, calm: true });
      expect(problems).toEqual([]);
    },
    60_000,
  );

  it.each(seeds)(
    'loses nothing and keeps the order, whatever crashes (SLUICE_SEED=%i)',
    async (seed) => {
      const { problems } = await simulate({ seed });
      expect(problems).toEqual([]);
    },
    60_000,
  );

  it('gives the same result for the same seed', async () => {
    expect(await simulate({ seed: FIRST_SEED })).toEqual(await simulate({ seed: FIRST_SEED }));
  }, 60_000);
});
