// npm run soak:store [-- --minutes 5 --kills 30 --seed 1]
// Two replicas of the event store under the highest load that they accept, while one of them, Kafka or PostgreSQL is killed every few seconds, or a
// replica is suspended. Finally, the stored events are compared with everything that Kafka has acknowledged.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { seededRandom } from '../../dist/libs/testing/src/seeded-random.js';
import { startStoreStack } from '../../bench/store/stack.mjs';
import { schema } from '../../dist/apps/event-store/src/database/schema.js';
import { Database } from '../../dist/libs/database/src/index.js';
import { KafkaClient, KafkaConfig, Publisher } from '../../dist/libs/messaging/src/index.js';
import { SecretsConfig } from '../../dist/libs/secrets/src/index.js';
import { createLog } from '../../dist/libs/observability/src/index.js';
import { compareWithStore } from './store/compare.mjs';
import { Producer } from './store/producer.mjs';
import { watchPages } from './store/readers.mjs';

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    kills: { type: 'string', default: '30' },
    events: { type: 'string', default: '500000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
/** Without progress for this long, the store is stuck. */
const STALLED_MS = 60_000;

const random = seededRandom(Number(options.seed));
const log = createLog('soak', 'fatal');
console.log(`seed ${options.seed}`);

const stack = await startStoreStack({ partitions: 4, replicas: 2, log: print });
try {
  await Promise.all(stack.stores.map((store) => store.start()));
  const publisher = new Publisher(new KafkaClient(KafkaConfig.read({ KAFKA_BROKERS: stack.brokers }), 'soak', log));
  await publisher.connect();
  const database = await Database.of(schema, { serverUrl: stack.databaseUrl, name: 'event_store', max: 10, log }).open();
  const producer = new Producer(publisher, database, random, SecretsConfig.read({ SLUICE_SECRETS_KEY: stack.secretsKey }).box);
  const producing = producer.run();
  const pages = watchPages(database, producer, random);

  const kills = await killFor(Number(options.minutes) * 60_000);
  while (producer.acknowledged < Number(options.events)) await sleep(500);
  producer.stop();
  await producing;
  console.log(
    `${producer.acknowledged} events and ${producer.deletions} deletions acknowledged, ${producer.resent} batches sent again; waiting for the store`,
  );
  const repeated = (await untilTaken(database)) - producer.acknowledged - producer.deletions;
  const seen = await pages.stop();
  const found = await compareWithStore(database, producer.expected);
  const total = Object.values(kills).reduce((sum, count) => sum + count, 0);
  console.log(
    JSON.stringify({
      soak: 'store',
      seed: Number(options.seed),
      acknowledged: producer.acknowledged,
      deletions: producer.deletions,
      kills: total,
      killed: kills,
      pages_read: seen.read,
      repeated_in_log: repeated,
      lost: found.lost + seen.lost,
      doubled: found.doubled + seen.doubled,
      disordered: found.disordered + seen.disordered,
      wrong_deletions: found.wrongDeletions,
      rows: found.rows,
      shown: found.shown,
    }),
  );
  await publisher.close();
  await database.close();
  const wrong = [found.lost, seen.lost, found.doubled, seen.doubled, found.disordered, seen.disordered, found.wrongDeletions];
  process.exitCode = wrong.every((count) => count === 0) ? 0 : 1;
} finally {
  await stack.stop();
}

/**
 * Prints the log lines of a replica that are of interest; that others are down is not.
 * @param {string} line
 */
function print(line) {
  if (/"level":"(error|fatal)"/.test(line)) console.log(line.slice(0, 600));
}

/**
 * At least as many kills as requested; the longest pause follows a kill of the broker, which needs up to 10 s to recover.
 * @param {number} ms
 */
async function killFor(ms) {
  /** @type {Record<string, number>} */
  const kills = { 'event-store': 0, frozen: 0, kafka: 0, postgres: 0 };
  const end = Date.now() + ms;
  const pause = ms / Number(options.kills);
  for (let count = 0; Date.now() < end || count < Number(options.kills); count++) {
    await sleep(pause * (0.3 + random() * 0.9));
    const dice = random();
    const [one] = random() < 0.5 ? stack.stores : [...stack.stores].reverse();
    if (dice < 0.45) {
      kills['event-store'] += 1;
      await one.kill();
    } else if (dice < 0.55) {
      // Longer than its session, and sometimes longer than a transaction may be idle: the other replica takes over, and then this one continues as if
      // nothing had happened.
      kills.frozen += 1;
      await one.kill('SIGSTOP');
      await sleep(random() < 0.7 ? 12_000 : 23_000);
      await one.kill('SIGCONT');
    } else if (dice < 0.75) {
      kills.kafka += 1;
      await stack.broker.kill();
      await stack.broker.whenReady();
    } else {
      kills.postgres += 1;
      await stack.postgres.kill(random() < 0.5 ? 'SIGKILL' : 'SIGQUIT');
      await stack.postgres.whenReady();
    }
    console.log(`${Object.values(kills).reduce((sum, each) => sum + each)} kills`, kills);
  }
  return kills;
}

/**
 * Resolves when the store has reached the end of the topic, and returns the number of its records.
 * @param {Database} database
 */
async function untilTaken(database) {
  const admin = new KafkaClient(KafkaConfig.read({ KAFKA_BROKERS: stack.brokers }), 'soak', log).admin();
  await admin.connect();
  const ends = await admin.fetchTopicOffsets('events');
  await admin.disconnect();
  // it may be far behind, but it must make progress
  for (let [taken, since] = [0, Date.now()]; ; await sleep(200)) {
    const { rows } = await database.query('SELECT partition, next_offset FROM event_progress').catch(() => ({ rows: [] }));
    const now = rows.reduce((sum, row) => sum + row.next_offset, 0);
    if (now > taken) [taken, since] = [now, Date.now()];
    const behind = ends.filter(
      ({ partition, high }) => !rows.some((row) => row.partition === partition && row.next_offset >= Number(high)),
    );
    if (behind.length === 0) return ends.reduce((sum, { high }) => sum + Number(high), 0);
    if (Date.now() > since + STALLED_MS)
      throw new Error(`the store does not reach the end of the topic: ${JSON.stringify({ rows, ends })}`);
  }
}
