// npm run bench:idle — CPU and memory of a system that has nothing to do, by process. Prints one JSON line.
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuByProcess } from './lib/cpu.mjs';
import { pssMb } from './lib/memory.mjs';
import { startOwnSystem } from '../scripts/temporary/own-system.mjs';

const SECONDS = Number(process.env.BENCH_SECONDS ?? 60);
/** Until then, the start's own work has ended, and with it the processes that were ready for more of it. */
const SETTLE_SECONDS = Number(process.env.BENCH_SETTLE_SECONDS ?? 75);

const system = await startOwnSystem();
try {
  await sleep(SETTLE_SECONDS * 1000);
  /** @type {Record<string, number | undefined>} */
  const pids = system.pids();
  const cpu = cpuByProcess(pids);
  const started = performance.now();
  await sleep(SECONDS * 1000);
  const elapsed = performance.now() - started;
  const figures = Object.entries(cpu()).map(([name, used]) => ({
    name,
    cpu_percent: round((used / elapsed) * 100),
    pss_mb: round(pssMb([pids[name]])),
  }));
  /** @param {'cpu_percent' | 'pss_mb'} figure */
  const total = (figure) => round(figures.reduce((sum, each) => sum + each[figure], 0));
  const processes = Object.fromEntries(figures.map(({ name, ...rest }) => [name, rest]));
  console.log(
    JSON.stringify({ bench: 'idle', seconds: SECONDS, cpu_percent_of_a_core: total('cpu_percent'), pss_mb: total('pss_mb'), processes }),
  );
} finally {
  await system.stop();
}

/** @param {number} value */
function round(value) {
  return Math.round(value * 10) / 10;
}
