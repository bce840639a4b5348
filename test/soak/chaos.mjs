// npm run soak:chaos -- [--minutes 10] [--seed N] [--replicas 1] [--rate 500] [--only 'disk full broker,kill'] [--pause 6]
// A whole system under load, while services and stores are killed, suspended, restored to older states, emptied and filled. Finally, what has arrived
// is compared with everything that Kafka has acknowledged.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { seededRandom } from '../../dist/libs/testing/src/seeded-random.js';
import { faultsOf } from './chaos/faults.mjs';
import { clock, verdict } from './chaos/judge.mjs';
import { Load } from './chaos/load.mjs';
import { count, System } from './chaos/system.mjs';

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    replicas: { type: 'string', default: '1' },
    rate: { type: 'string', default: '500' },
    only: { type: 'string', default: '' },
    pause: { type: 'string', default: '6' },
  },
});
/** Enough for a few minutes of events and WAL; small enough to be filled quickly. */
const DISKS = { broker: 700, postgres: 1500 };
/** How long before a fault its silence may begin: between two deliveries. */
const BETWEEN_MS = 100;

const replicas = Number(options.replicas);
const random = seededRandom(Number(options.seed));
const say = (/** @type {string} */ line) => console.log(`${clock(Date.now())} ${line}`);
say(`seed ${options.seed}`);

const system = await System.start({ replicas, disks: DISKS, say });
if (!system.stores.hasDisks) say('full disks are left out: no file system can be mounted here');
try {
  const load = new Load(system, { perSecond: Number(options.rate), random });
  await load.setUp();
  load.start();
  await sleep(3000);

  const patterns = options.only.split(',').filter(Boolean);
  const faults = faultsOf(system, load, { random, replicas }).filter(
    ({ name }) => patterns.length === 0 || patterns.some((pattern) => name.startsWith(pattern)),
  );
  if (faults.length === 0) throw new Error(`no fault begins with ${options.only}`);
  /** @type {{ name: string, from: number }[]} */
  const done = [];
  /** @type {import('./chaos/faults.mjs').Damage[]} */
  const damages = [];
  for (const end = Date.now() + Number(options.minutes) * 60_000; Date.now() < end;) {
    const fault = pick(faults);
    say(`${fault.name} … (${load.acknowledged} acknowledged, ${load.arrivals} arrived)`);
    const from = Date.now();
    try {
      const damage = await fault.run();
      if (damage) damages.push(damage);
    } catch (error) {
      say(`${fault.name} failed: ${/** @type {Error} */ (error).message}`);
    }
    done.push({ name: fault.name, from });
    await sleep(Number(options.pause) * 1000 * (0.5 + random()));
  }
  say('waiting for the producers');
  await load.stop();
  say('waiting for the deliveries');
  const { found, details, isGood } = await verdict(system, load, damages);
  for (const detail of details) say(detail);
  for (const [complaint, count] of system.complaints) say(`${count} times: ${complaint}`);
  console.log(
    JSON.stringify({
      soak: 'chaos',
      seed: Number(options.seed),
      replicas,
      acknowledged: load.acknowledged,
      faults: done.length,
      ...found,
      repeated_share: Number((found.repeated / Math.max(1, load.acknowledged)).toFixed(5)),
      reports: system.reportCounts(),
      rest: load.statuses,
      rest_writes: load.writeStatuses,
      explanations: [...load.explanations],
      longest_answer_s: Math.round(load.longestAnswerMs / 100) / 10,
      longest_silence_s: silences(done, load),
      repeated_after: repetitions(done, load),
      by_kind: count(done.map(({ name }) => name)),
    }),
  );
  load.close();
  process.exitCode = isGood ? 0 : 1;
} finally {
  await system.stop();
}

/** @param {import('./chaos/faults.mjs').Fault[]} faults */
function pick(faults) {
  const total = faults.reduce((sum, { weight }) => sum + weight, 0);
  let rest = random() * total;
  return /** @type {import('./chaos/faults.mjs').Fault} */ (faults.find(({ weight }) => (rest -= weight) < 0) ?? faults[0]);
}

/**
 * How many deliveries were repeated during each kind of fault, and until the next one.
 * @param {{ name: string, from: number }[]} done @param {Load} load
 */
function repetitions(done, load) {
  return count(load.repetitions.map((at) => done.findLast(({ from }) => from <= at)?.name ?? ''));
}

/**
 * The longest time without deliveries that began during each kind of fault, or until the next one, in seconds.
 * @param {{ name: string, from: number }[]} done @param {Load} load
 */
function silences(done, load) {
  const longest = Object.fromEntries(done.map(({ name }) => [name, 0]));
  for (const { from, to } of load.silences) {
    const name = done.findLast((fault) => fault.from - BETWEEN_MS <= from)?.name ?? '';
    longest[name] = Math.max(longest[name] ?? 0, Math.round((to - from) / 100) / 10);
  }
  return longest;
}
