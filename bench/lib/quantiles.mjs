/**
 * Quantiles of measured values, rounded to two decimals: the least value that at least this share of them does not exceed.
 *
 * @param {number[]} values
 */
export function quantiles(values) {
  const sorted = Float64Array.from(values).sort();
  /** @param {number} q */
  const at = (q) => Math.round((sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? NaN) * 100) / 100;
  return { p50: at(0.5), p99: at(0.99), max: at(1), count: sorted.length };
}

/**
 * Calls `work` at a steady rate, whether earlier calls have ended or not, and returns the duration of each, in ms.
 *
 * @param {{ perSecond: number, seconds: number }} load
 * @param {(n: number) => Promise<unknown>} work
 */
export async function atRate({ perSecond, seconds }, work) {
  const started = performance.now();
  /** @type {Promise<number>[]} */
  const calls = [];
  for (let n = 0; n < perSecond * seconds; n++) {
    const due = started + (n * 1000) / perSecond;
    const wait = due - performance.now();
    if (wait > 1) await new Promise((resolve) => setTimeout(resolve, wait));
    // measured from its due time: a call that had to wait counts as slower
    calls.push(work(n).then(() => performance.now() - due));
  }
  return Promise.all(calls);
}

/**
 * The middle one of the values, rounded to this many decimals.
 *
 * @param {number[]} values
 * @param {number} decimals
 */
export function median(values, decimals = 2) {
  const factor = 10 ** decimals;
  return Math.round((values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN) * factor) / factor;
}
