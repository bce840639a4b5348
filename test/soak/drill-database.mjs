// npm run drill:database -- [--minutes 0.5] [--rate 100]
// Follows docs/operations/backup.md: backs up the databases of a running system, lets it work for some time, with deliveries that fail and wait for a
// retry, and restores the backup. Reports what was lost and what was repeated of everything that Kafka has acknowledged.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { seededRandom } from '../../bench/store/load.mjs';
import { verdict } from './chaos/judge.mjs';
import { Load } from './chaos/load.mjs';
import { APPS, System } from './chaos/system.mjs';

const { values: options } = parseArgs({
  options: { minutes: { type: 'string', default: '0.5' }, rate: { type: 'string', default: '100' } },
});
const phaseMs = (Number(options.minutes) * 60_000) / 3;
const say = (/** @type {string} */ line) => console.log(line);

const system = await System.start({ say });
try {
  const load = new Load(system, { perSecond: Number(options.rate), random: seededRandom(1), emitters: 12 });
  await load.setUp();
  load.start();
  await sleep(phaseMs);
  say('backing up all databases');
  const backup = await system.backUp();
  const backedUp = load.acknowledged;
  load.isFailing = true;
  await sleep(phaseMs);
  say('stopping the services and restoring the backup');
  await system.stopApps(APPS);
  const restored = load.acknowledged;
  await system.restore(backup);
  load.isFailing = false;
  await system.startApps(APPS);
  say('running again');
  await sleep(phaseMs);
  await load.stop();
  const { found, details, isGood } = await verdict(system, load, []);
  for (const detail of details) say(detail);
  const reports = system.reportCounts();
  console.log(
    JSON.stringify({
      drill: 'database',
      acknowledged: load.acknowledged,
      since_backup: restored - backedUp,
      ...found,
      database_restored: reports['database.restored'] ?? 0,
    }),
  );
  load.close();
  process.exitCode = isGood && reports['database.restored'] ? 0 : 1;
} finally {
  await system.stop();
}
