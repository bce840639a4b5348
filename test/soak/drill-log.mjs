// npm run drill:log -- [--minutes 0.5] [--rate 100] [--way disk|topic]
// Kafka loses its data: the broker's disk, or the topic `events`, while the services run and some events have not been read. Reports what was lost
// with it, and whether everything else of what Kafka has acknowledged was delivered and stored.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { seededRandom } from '../../bench/store/load.mjs';
import { deleteTopic, loseLog } from './chaos/faults.mjs';
import { verdict } from './chaos/judge.mjs';
import { Load } from './chaos/load.mjs';
import { System } from './chaos/system.mjs';

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '0.5' },
    rate: { type: 'string', default: '100' },
    way: { type: 'string', default: 'disk' },
  },
});
const phaseMs = (Number(options.minutes) * 60_000) / 2;
/** How long nobody reads before the loss. */
const UNREAD_MS = 3000;
const READERS = /** @type {const} */ (['routing', 'event-store']);
const say = (/** @type {string} */ line) => console.log(line);
if (!['disk', 'topic'].includes(options.way)) throw new Error(`--way must be disk or topic, not "${options.way}"`);

const system = await System.start({ say });
try {
  const load = new Load(system, { perSecond: Number(options.rate), random: seededRandom(1), emitters: 12 });
  await load.setUp();
  load.start();
  await sleep(phaseMs);
  await system.stopApps(READERS, 'SIGKILL');
  await sleep(UNREAD_MS);
  say(options.way === 'disk' ? 'the broker loses its disk' : 'the topic events is deleted');
  const damage = await (options.way === 'disk' ? loseLog(system) : deleteTopic(system));
  await system.startApps(READERS);
  say('running again');
  await sleep(phaseMs);
  await load.stop();
  const { found, details, isGood } = await verdict(system, load, [damage]);
  for (const detail of details) say(detail);
  const { destroyed: lost_with_log, ...rest } = found;
  const reports = system.reportCounts();
  console.log(
    JSON.stringify({
      ...{ drill: 'log', way: options.way, acknowledged: load.acknowledged, lost_with_log },
      ...rest,
      topics_recreated: reports['topics.recreated'] ?? 0,
      logs_replaced: reports['log.replaced'] ?? 0,
    }),
  );
  load.close();
  process.exitCode = isGood && lost_with_log > 0 ? 0 : 1;
} finally {
  await system.stop();
}
