import { seededRandom } from '../../../dist/libs/testing/src/seeded-random.js';
import { verdict } from './judge.mjs';
import { Load } from './load.mjs';
import { System } from './system.mjs';

export const say = (/** @type {string} */ line) => console.log(line);

/**
 * Starts a system under load, damages it, and compares what has arrived with everything that Kafka has acknowledged. The last line of the output is
 * the result as JSON.
 *
 * @template Result
 * @param {string} rate events per second
 * @param {(system: System, load: Load) => Promise<{ damages: import('./faults.mjs').Damage[] } & Result>} damage ends when the load may stop
 * @param {(found: Awaited<ReturnType<typeof verdict>>['found'], reports: Record<string, number>, result: Result, acknowledged: number) =>
 *   { shown: object, isExpected: boolean }} report the result, and whether the drill has shown what it should
 */
export async function drill(rate, damage, report) {
  const system = await System.start({ say });
  try {
    const load = new Load(system, { perSecond: Number(rate), random: seededRandom(1), emitters: 12 });
    await load.setUp();
    load.start();
    const result = await damage(system, load);
    await load.stop();
    const { found, details, isGood } = await verdict(system, load, result.damages);
    for (const detail of details) say(detail);
    const { shown, isExpected } = report(found, system.reportCounts(), result, load.acknowledged);
    console.log(JSON.stringify(shown));
    load.close();
    process.exitCode = isGood && isExpected ? 0 : 1;
  } finally {
    await system.stop();
  }
}
