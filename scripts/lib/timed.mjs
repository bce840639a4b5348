/** @type {[step: string, seconds: number][]} */
const steps = [];

/**
 * Runs a step, and prints its name when it begins.
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

/** How long each step took, in one line. */
export const times = () => steps.map(([step, seconds]) => `${step} ${seconds} s`).join(', ');
