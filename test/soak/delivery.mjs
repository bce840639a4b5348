// npm run soak:delivery [-- --minutes 6 --kills 32 --events 300000 --seed 1]
// Two replicas of routing deliver events to endpoints that work, flap or are sometimes slow, while routing, Kafka, PostgreSQL and the
// receiver are killed every few seconds. Finally, the deliveries are compared with everything that Kafka has acknowledged.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { seededRandom } from '../../dist/libs/testing/src/seeded-random.js';
import * as contracts from '../../dist/libs/contracts/src/index.js';
import { eventIdOf, eventPlace } from '../../dist/libs/events/src/index.js';
import { schema } from '../../dist/apps/routing/src/database/schema.js';
import { Database } from '../../dist/libs/database/src/index.js';
import { createKafka, Messages, Publisher } from '../../dist/libs/messaging/src/index.js';
import { createLog } from '../../dist/libs/observability/src/index.js';
import { SecretBox } from '../../dist/libs/secrets/src/index.js';
import { compareWithArrivals } from './delivery/compare.mjs';
import { Producer } from './delivery/producer.mjs';
import { startDeliveryStack } from './delivery/stack.mjs';

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '6' },
    kills: { type: 'string', default: '32' },
    events: { type: 'string', default: '300000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const EMITTERS = 60;
const WEBHOOKS = 80;
const KINDS = ['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'flap', 'slow'];
const REST_MS = 5 * 60_000;

const random = seededRandom(Number(options.seed));
const log = createLog('soak', 'fatal');
console.log(`seed ${options.seed}`);

/** First attempts that failed, from the log of routing. @type {Set<string>} */
const failedAttempts = new Set();
/** When a replica learned of a rebalance. @type {number[]} */
const handovers = [];
const stack = await startDeliveryStack({ replicas: 2, log: print });
try {
  const kafka = createKafka({ brokers: [stack.brokers] }, 'soak', log);
  const publisher = new Publisher(kafka);
  const messages = new Messages('gateway', kafka, publisher, log, new SecretBox([]));
  await Promise.all([publisher.connect(), messages.connect()]);
  const listeners = await setUp(messages);
  const producer = new Producer(publisher, [...listeners.keys()], Number(options.events) / (Number(options.minutes) * 60), random);
  const producing = producer.run();
  const kills = await killFor(Number(options.minutes) * 60_000);
  while (producer.acknowledged < Number(options.events)) await sleep(500);
  producer.stop();
  await producing;
  console.log(`${producer.acknowledged} events acknowledged; waiting for the deliveries`);
  await untilDelivered();
  const interruptions = [...kills, ...handovers.map((at) => ({ from: at, to: at }))].sort((a, b) => a.from - b.from);
  const found = await compareWithArrivals(stack.arrivals, {
    emitted: producer.emitted,
    listeners,
    resent: producer.resent,
    failed: await named(failedAttempts),
    interruptions,
  });
  const killed = Object.groupBy(kills, ({ what }) => what);
  console.log(
    JSON.stringify({
      soak: 'delivery',
      seed: Number(options.seed),
      acknowledged: producer.acknowledged,
      kills: kills.length,
      killed: Object.fromEntries(Object.entries(killed).map(([what, each]) => [what, each?.length])),
      repeated_share: Number((found.repeated / found.deliveries).toFixed(6)),
      ...found,
    }),
  );
  await messages.close();
  await publisher.close();
  process.exitCode = found.lost + found.disordered + found.changed_ids + found.beyond_window === 0 ? 0 : 1;
} finally {
  await stack.stop();
}

/**
 * Emitters, webhooks and subscriptions: each emitter has a webhook, and some webhooks are listeners of several.
 * @param {Messages} messages
 */
async function setUp(messages) {
  const owner_id = contracts.newId('user');
  const webhooks = [];
  for (let n = 0; n < WEBHOOKS; n++) {
    const id = contracts.newId('webhook');
    const url = `${stack.receiverUrl}/${KINDS[n % KINDS.length]}/${id}`;
    await messages.request(contracts.createWebhook, { id, owner_id, url }, { key: owner_id, timeoutMs: 60_000 });
    webhooks.push(id);
  }
  const emitters = Array.from({ length: EMITTERS }, () => contracts.newId('source'));
  for (const emitter_id of emitters) {
    const state = { emitter_id, kind: 'source', owner_id, active: true, deleted: false, version: 1, name: '', created_at_ms: Date.now() };
    await messages.publish(contracts.emitterChanged, /** @type {any} */ (state), emitter_id);
  }
  // routing would look up an unknown emitter in the catalog, which is not running
  await sleep(3000);
  /** @type {Map<string, string[]>} */
  const listeners = new Map();
  for (const [n, emitter_id] of emitters.entries()) {
    const own = [...new Set([webhooks[n] ?? '', ...(random() < 0.2 ? [webhooks[Math.floor(random() * WEBHOOKS)] ?? ''] : [])])];
    listeners.set(emitter_id, own);
    for (const listener_id of own) {
      const reference = /** @type {any} */ ({ owner_id, emitter_id, listener_id });
      await messages.request(contracts.createSubscription, reference, { key: owner_id, timeoutMs: 60_000 });
    }
  }
  return listeners;
}

/** @param {string} line of the routing's log */
function print(line) {
  if (line.includes('"delivery.attempted"')) {
    const { webhook_id, event_id, attempt, outcome } = JSON.parse(line);
    if (attempt === 1 && outcome !== 'delivered') failedAttempts.add(`${webhook_id} ${event_id}`);
  } else if (line.includes('The group is rebalancing')) handovers.push(Date.parse(JSON.parse(line).time));
  else if (/"level":"(error|fatal)"/.test(line)) console.log(line.slice(0, 600));
}

/**
 * Identifies events by emitter and number instead of by id: read from the topic.
 * @param {Set<string>} failed
 */
async function named(failed) {
  const wanted = new Map([...failed].map((key) => [key.split(' ')[1] ?? '', '']));
  const consumer = createKafka({ brokers: [stack.brokers] }, 'soak', log).consumer({ groupId: `soak.${Date.now()}` });
  const admin = createKafka({ brokers: [stack.brokers] }, 'soak', log).admin();
  await admin.connect();
  const ends = new Map((await admin.fetchTopicOffsets('events')).map(({ partition, high }) => [partition, Number(high)]));
  await admin.disconnect();
  await consumer.connect();
  await consumer.subscribe({ topics: ['events'], fromBeginning: true });
  const clocks = new Map();
  const left = new Set([...ends].filter(([, high]) => high > 0).map(([partition]) => partition));
  await new Promise((resolve) => {
    if (left.size === 0) resolve(undefined);
    void consumer.run({
      autoCommit: false,
      eachBatch: async ({ batch, heartbeat }) => {
        for (const message of batch.messages) {
          const clock = Math.max(clocks.get(batch.partition) ?? 0, Number(message.timestamp));
          clocks.set(batch.partition, clock);
          const id = eventIdOf(eventPlace({ clock, offset: Number(message.offset), partition: batch.partition }));
          if (!wanted.has(id)) continue;
          const { emitter, n } = JSON.parse(String(message.value));
          wanted.set(id, `${emitter} ${n}`);
        }
        await heartbeat();
        if (Number(batch.lastOffset()) + 1 >= (ends.get(batch.partition) ?? 0)) left.delete(batch.partition);
        if (left.size === 0) resolve(undefined);
      },
    });
  });
  await consumer.disconnect();
  return new Set([...failed].map((key) => `${key.split(' ')[0]} ${wanted.get(key.split(' ')[1] ?? '')}`));
}

/**
 * At least as many kills as requested; the longest pause follows a kill of the broker, which needs up to 10 s to recover.
 * @param {number} ms
 */
async function killFor(ms) {
  /** @type {{ from: number, to: number, what: string }[]} */
  const kills = [];
  const end = Date.now() + ms;
  const pause = ms / Number(options.kills);
  while (Date.now() < end || kills.length < Number(options.kills)) {
    await sleep(pause * (0.2 + random() * 0.8));
    const dice = random();
    const [one] = random() < 0.5 ? stack.routings : [...stack.routings].reverse();
    const [what, service] = /** @type {const} */ (
      dice < 0.4
        ? ['routing', one]
        : dice < 0.6
          ? ['receiver', stack.receiver]
          : dice < 0.8
            ? ['postgres', stack.postgres]
            : ['kafka', stack.broker]
    );
    const from = Date.now();
    await service?.kill('SIGKILL');
    await service?.whenReady();
    kills.push({ from, to: Date.now(), what });
    console.log(`${kills.length} kills: ${what}`);
  }
  return kills;
}

/** Resolves when nothing is parked any more and the group is at the end of the topic. */
async function untilDelivered() {
  const database = await Database.of(schema, { serverUrl: stack.databaseUrl, name: 'routing', max: 10, log }).open();
  const admin = createKafka({ brokers: [stack.brokers] }, 'soak', log).admin();
  await admin.connect();
  try {
    for (const deadline = Date.now() + REST_MS; ; await sleep(500)) {
      const { rows } = await database
        .query('SELECT (SELECT count(*) FROM parked_delivery) AS parked, (SELECT count(*) FROM webhook WHERE spilled) AS spilled')
        .catch(() => ({ rows: [] }));
      const ends = await admin.fetchTopicOffsets('events');
      const [{ partitions = [] } = {}] = await admin.fetchOffsets({ groupId: 'routing.events', topics: ['events'] });
      const behind = ends.filter(
        ({ partition, high }) => Number(partitions.find((each) => each.partition === partition)?.offset ?? 0) < Number(high),
      );
      if (rows[0]?.parked === 0 && rows[0]?.spilled === 0 && behind.length === 0) return;
      if (Date.now() > deadline) return console.log('not delivered in time', rows[0], behind);
    }
  } finally {
    await admin.disconnect();
    await database.close();
  }
}
