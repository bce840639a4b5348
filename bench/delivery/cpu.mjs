import { cpuSeconds } from '../lib/cpu.mjs';

/**
 * CPU seconds by process between two moments.
 *
 * @param {() => Record<string, number | string | undefined>} processes ids, or a name that several processes share, by label
 */
export function cpuMeter(processes) {
  const read = () => Object.fromEntries(Object.entries(processes()).map(([name, process]) => [name, cpuSeconds(process) ?? 0]));
  const start = read();
  return () =>
    Object.fromEntries(Object.entries(read()).map(([name, seconds]) => [name, Number((seconds - (start[name] ?? 0)).toFixed(2))]));
}
