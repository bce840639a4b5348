/** @type {[step: string, seconds: number][]} */
const steps = [];

/**
 * Runs a step, and prints its name at the beginning.
 *
 * @template T
 * @param {string} step
 * @param {() => Promise<T>} action
 * @returns {Promise<T>}
 */
export async function timed(step, action) {
  console.log(`… ${step}`);
  const begunAt = performance.now();
  try {
    return await action();
  } finally {
    steps.push([step, Math.round((performance.now() - begunAt) / 1000)]);
  }
}

/** The duration of each step, in one line. */
export const times = () => steps.map(([step, seconds]) => `${step} ${seconds} s`).join(', ');
