// The relays for comparison: Kafka → POST, and with `durable` Kafka → insert in batches → POST → delete in batches. No matching, no signing,
// no retries, no order: the minimum that moves an event from a topic to endpoints. With `stock`, it uses kafkajs as it is, otherwise our client.
import pg from 'pg';
import { Agent, request } from 'undici';

const { brokers, databaseUrl, durable, stock, topic, routes } = JSON.parse(process.argv[2] ?? '{}');
const CONCURRENCY = 256;
const BATCH = 500;

const kafka = await (stock ? stockClient() : ourClient());
const agent = new Agent();
const pool = durable ? new pg.Pool({ connectionString: databaseUrl, max: 8 }) : undefined;
await pool?.query('DROP TABLE IF EXISTS relayed; CREATE TABLE relayed (id bigint PRIMARY KEY, url text NOT NULL, body bytea NOT NULL)');

let running = 0;
/** @type {(() => void)[]} */
const waiting = [];
let id = 0;

async function stockClient() {
  const { default: kafkajs } = await import('kafkajs');
  return new kafkajs.Kafka({ clientId: 'relay', brokers: [brokers], logLevel: kafkajs.logLevel.ERROR });
}

// not imported by the stock relay, because it replaces parts of kafkajs
async function ourClient() {
  const { KafkaClient, KafkaConfig } = await import('../../dist/libs/messaging/src/index.js');
  const { createLog } = await import('../../dist/libs/observability/src/index.js');
  return new KafkaClient(KafkaConfig.read({ KAFKA_BROKERS: brokers }), 'relay', createLog('relay', 'warn'));
}

/** @param {string} url @param {Buffer} body */
async function post(url, body) {
  if (running >= CONCURRENCY) await new Promise((resolve) => waiting.push(() => resolve(undefined)));
  running += 1;
  const response = await request(url, { dispatcher: agent, method: 'POST', headers: { 'content-type': 'application/json' }, body });
  await response.body.dump();
  running -= 1;
  waiting.shift()?.();
}

/** @param {{ url: string, body: Buffer }[]} deliveries */
async function deliver(deliveries) {
  if (!pool) return void (await Promise.all(deliveries.map(({ url, body }) => post(url, body))));
  const ids = deliveries.map(() => (id += 1));
  await pool.query({
    name: 'keep',
    text: 'INSERT INTO relayed (id, url, body) SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[])',
    values: [ids, deliveries.map(({ url }) => url), deliveries.map(({ body }) => body)],
  });
  await Promise.all(deliveries.map(({ url, body }) => post(url, body)));
  await pool.query({ name: 'delete', text: 'DELETE FROM relayed WHERE id = ANY($1)', values: [ids] });
}

const consumer = kafka.consumer({ groupId: `relay.${Date.now()}`, maxWaitTimeInMs: 250, maxBytes: 16 * 1024 * 1024 });
await consumer.connect();
await consumer.subscribe({ topics: [topic], fromBeginning: false });
consumer.on(consumer.events.GROUP_JOIN, () => setTimeout(() => process.send?.('ready'), 500));

/** Batches in progress: two, so that there is always something to send. */
/** @type {Promise<void>[]} */
const underWay = [];
const offsets = new Map();
await consumer.run({
  autoCommit: false,
  eachBatch: async ({ batch, heartbeat }) => {
    for (let start = 0; start < batch.messages.length; start += BATCH) {
      const deliveries = batch.messages.slice(start, start + BATCH).flatMap(({ key, value }) => {
        const body = value ?? Buffer.alloc(0);
        return (routes[String(key)] ?? []).map((/** @type {string} */ url) => ({ url, body }));
      });
      underWay.push(deliver(deliveries));
      if (underWay.length > 1) await underWay.shift();
    }
    offsets.set(batch.partition, String(Number(batch.lastOffset()) + 1));
    await heartbeat();
  },
});
setInterval(() => {
  void consumer.commitOffsets([...offsets].map(([partition, offset]) => ({ topic, partition, offset }))).catch(() => {});
}, 100);
process.on('disconnect', () => process.exit());
