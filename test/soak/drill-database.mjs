// npm run drill:database -- [--minutes 0.5] [--rate 100]
// Follows docs/operations/backup.md: backs up the databases of a running system, lets it work for some time, with deliveries that fail and wait for a
// retry, and restores the backup. Reports what was lost and what was repeated of everything that Kafka has acknowledged.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { APPS } from '../../scripts/processes/apps.mjs';
import { drill, say } from './chaos/drill.mjs';

const { values: options } = parseArgs({
  options: { minutes: { type: 'string', default: '0.5' }, rate: { type: 'string', default: '100' } },
});
const phaseMs = (Number(options.minutes) * 60_000) / 3;

await drill(
  options.rate,
  async (system, load) => {
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
    return { damages: [], since_backup: restored - backedUp };
  },
  // nothing is lost with the log
  ({ destroyed: _, unreported: __, ...found }, { 'database.restored': database_restored = 0 }, { since_backup }, acknowledged) => ({
    shown: { drill: 'database', acknowledged, since_backup, ...found, database_restored },
    isExpected: database_restored > 0,
  }),
);
