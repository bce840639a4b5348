import { ExplainedError } from '../shell/explained-error.mjs';

/** The seed of every randomised test unless SLUICE_SEED is set. Its value has no meaning; it is fixed so that `npm test` is deterministic. */
const FIXED = 20_261_121;

/**
 * The seed of the randomised tests of this run.
 * @param {string | undefined} [value] of SLUICE_SEED
 * @returns {number} from 0 to 2^31 - 1
 * @throws {ExplainedError} when the variable is not such a number
 */
export function testSeed(value = process.env.SLUICE_SEED) {
  if (!value) return FIXED;
  const seed = Number(value);
  if (!/^\d+$/.test(value) || seed > 0x7f_ff_ff_ff) {
    throw new ExplainedError(`SLUICE_SEED must be a whole number from 0 to ${0x7f_ff_ff_ff}, not "${value}".`);
  }
  return seed;
}
