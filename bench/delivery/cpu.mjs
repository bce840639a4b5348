import { cpuMs, cpuSeconds } from '../lib/cpu.mjs';

/**
 * CPU seconds by process between two moments, with its descendants; for this process, whose descendants are all others, without them.
 *
 * @param {() => Record<string, number | undefined>} processes ids by label
 */
export function cpuMeter(processes) {
  /** @param {number | undefined} pid */
  const seconds = (pid) => (pid === process.pid ? (cpuSeconds(pid) ?? 0) : cpuMs([pid]) / 1000);
  const read = () => Object.fromEntries(Object.entries(processes()).map(([name, pid]) => [name, seconds(pid)]));
  const start = read();
  return () =>
    Object.fromEntries(Object.entries(read()).map(([name, seconds]) => [name, Number((seconds - (start[name] ?? 0)).toFixed(2))]));
}
