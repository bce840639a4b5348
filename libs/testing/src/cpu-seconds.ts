/** The CPU seconds that `reference` takes on the machines for which the limits were chosen. */
const USUAL_SECONDS = 0.02;
/** Far below the factor between the right algorithm and the wrong one. */
const MAX_SLOWNESS = 5;

/**
 * CPU seconds that this process spends on some work, or fewer if the machine is slow at the moment: as many as a usual one would need.
 *
 * For tests that an algorithm is not quadratic: the input is so large that the wrong algorithm takes at least ten
 * times the limit, and the right one less than a tenth of it, on any machine and under any load.
 */
export async function cpuSeconds(work: () => unknown): Promise<number> {
  const before = await measured(reference);
  const spent = await measured(work);
  // a busy machine is slow at times
  const slowness = Math.max(before, await measured(reference)) / USUAL_SECONDS;
  return spent / Math.min(Math.max(slowness, 1), MAX_SLOWNESS);
}

async function measured(work: () => unknown): Promise<number> {
  const begin = process.cpuUsage();
  await work();
  const { user } = process.cpuUsage(begin);
  return user / 1e6;
}

/** Computes, and allocates memory, as the measured work does. */
function reference(): void {
  const rows = Array.from({ length: 2000 }, (_, n) => ({ id: n, name: `row ${n}` }));
  for (let round = 0; round < 20; round++) JSON.parse(JSON.stringify(rows));
}
