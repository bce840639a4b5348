/**
 * Runs a step that may take long: says at its beginning what it does and how long that takes, and later that it has not ended.
 *
 * @template T
 * @param {(line: string) => void} say
 * @param {string} step such as "downloading Apache Kafka"
 * @param {string} expected how long it takes, or how much it fetches
 * @param {() => Promise<T>} action
 * @param {number} [repeatMs]
 * @returns {Promise<T>}
 */
export async function announced(say, step, expected, action, repeatMs = 10_000) {
  const begunAt = performance.now();
  say(`… ${step} (${expected})`);
  const timer = setInterval(() => say(`… still ${step}, since ${Math.round((performance.now() - begunAt) / 1000)} s`), repeatMs);
  try {
    return await action();
  } finally {
    clearInterval(timer);
  }
}
