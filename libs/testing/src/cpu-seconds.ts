/**
 * CPU seconds that this process spends on some work.
 *
 * For tests that an algorithm is not quadratic: the input is so large that the wrong algorithm takes at least ten
 * times the limit, and the right one less than a tenth of it, on any machine and under any load.
 */
export async function cpuSeconds(work: () => unknown): Promise<number> {
  const begin = process.cpuUsage();
  await work();
  const { user } = process.cpuUsage(begin);
  return user / 1e6;
}
