// npm run drill:log -- [--minutes 0.5] [--rate 100] [--way disk|topic]
// Kafka loses its data: the broker's disk, or the topic `events`, while the services run and some events have not been read. Reports what was lost
// with it, and whether everything else of what Kafka has acknowledged was delivered and stored.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { drill, say } from './chaos/drill.mjs';
import { deleteTopic, loseLog } from './chaos/faults.mjs';

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
const { way } = options;
if (!['disk', 'topic'].includes(way)) throw new Error(`--way must be disk or topic, not "${way}"`);

await drill(
  options.rate,
  async (system) => {
    await sleep(phaseMs);
    await system.stopApps(READERS, 'SIGKILL');
    await sleep(UNREAD_MS);
    say(way === 'disk' ? 'the broker loses its disk' : 'the topic events is deleted');
    const damage = await (way === 'disk' ? loseLog(system) : deleteTopic(system));
    await system.startApps(READERS);
    say('running again');
    await sleep(phaseMs);
    return { damages: [damage] };
  },
  ({ destroyed: lost_with_log, ...rest }, reports, _, acknowledged) => ({
    shown: {
      ...{ drill: 'log', way, acknowledged, lost_with_log },
      ...rest,
      topics_recreated: reports['topics.recreated'] ?? 0,
      logs_replaced: reports['log.replaced'] ?? 0,
    },
    isExpected: lost_with_log > 0,
  }),
);
