// npm run bench:store [-- --emitters 10000 --events 900000 --growth-events 2500000 (0: not measured)]
// Events per second and CPU of the event store, compared with plain COPY of the same rows on the same machine; pages at the same time; growth of the table.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { AppendRepository } from '../dist/apps/event-store/src/append/append.repository.js';
import { AppendService } from '../dist/apps/event-store/src/append/append.service.js';
import { COPIED_COLUMNS, copyIn, copyRows } from '../dist/apps/event-store/src/append/copy-rows.js';
import { StreamCounter, TrimCounter } from '../dist/apps/event-store/src/append/stream-counters.js';
import { schema } from '../dist/apps/event-store/src/database/schema.js';
import { EventPagesRepository } from '../dist/apps/event-store/src/pages/event-pages.repository.js';
import { pageWindow } from '../dist/apps/event-store/src/pages/event-pages.service.js';
import { eventPlace } from '../dist/libs/events/src/index.js';
import { Database } from '../dist/libs/database/src/index.js';
import { KafkaClient, KafkaConfig, Publisher } from '../dist/libs/messaging/src/index.js';
import { createLog } from '../dist/libs/observability/src/index.js';
import { freshDatabase, seededRandom } from '../dist/libs/testing/src/index.js';
import { cpuMs, cpuSeconds } from './lib/cpu.mjs';
import { quantiles } from './lib/quantiles.mjs';
import { emitterIds, Load } from './store/load.mjs';
import { startStoreStack } from './store/stack.mjs';

const { values: options } = parseArgs({
  options: {
    emitters: { type: 'string', default: '10000' },
    events: { type: 'string', default: '900000' },
    'growth-events': { type: 'string', default: '2500000' },
  },
});
const EMITTERS = Number(options.emitters);
const EVENTS = Number(options.events);
const GROWTH_EVENTS = Number(options['growth-events']);
/** The store reads its partitions concurrently; COPY gets as many connections. */
const PARTITIONS = 4;
const BATCH = 4000;
/** Halfway between a stream that has just been trimmed and one that is about to be. */
const PRELOADED = 150;
const PAGES_PER_SECOND = 50;

const log = createLog('bench', 'warn');
/** @param {number} value */
const round = (value, digits = 0) => Number(value.toFixed(digits));
/**
 * @param {number | null} start
 * @param {number | null} end
 * @param {number} events
 */
const microsecondsEach = (start, end, events) => (start === null || end === null ? null : round(((end - start) / events) * 1e6, 1));

const stack = await startStoreStack({ partitions: PARTITIONS });
try {
  // Before and after, because other load on the machine affects both.
  const before = await plainCopy();
  console.log('plain COPY:', before);
  const store = await eventStore();
  console.log('event store:', store);
  const after = await plainCopy();
  console.log('plain COPY:', after);
  const withoutKafka = await appendFromMemory();
  console.log('event store, from memory:', withoutKafka);
  const growth = [];
  for (const emitters of GROWTH_EVENTS === 0 ? [] : [100, 10_000, 1_000_000]) {
    growth.push(await growthWith(emitters));
    console.log('growth:', growth.at(-1));
  }
  const rowsPerSecond = (before.rows_per_second + after.rows_per_second) / 2;
  console.log(
    JSON.stringify({
      bench: 'store',
      ratio_to_copy: round(store.events_per_second / rowsPerSecond, 3),
      ratio_to_copy_from_memory: round(withoutKafka.events_per_second / rowsPerSecond, 3),
      emitters: EMITTERS,
      copy: [before, after],
      store,
      without_kafka: withoutKafka,
      growth,
    }),
  );
} finally {
  await stack.stop();
}

/**
 * The events of a partition as the store's own code represents them, in batches.
 * @param {Load} load
 * @param {number} partition
 * @param {number} count
 */
function batchesOf(load, partition, count) {
  const start = Date.now();
  return Array.from({ length: Math.ceil(count / BATCH) }, (_, batch) =>
    Array.from({ length: BATCH }, (_, index) => {
      const offset = batch * BATCH + index;
      const place = eventPlace({ clock: start + Math.floor(offset / 20), offset, partition });
      return { kind: 'event', place, stream: '', hops: 0, ...load.next() };
    }),
  );
}

/** The target: the same rows, through the same code, into the same table with only its primary key; nothing is deleted. */
async function plainCopy() {
  const statement = `COPY event (${COPIED_COLUMNS}) FROM STDIN (FORMAT binary)`;
  const { rate, client, postgres } = await writeFromMemory(
    (database) => database.query('DROP INDEX event_emitted_once'),
    (database) => (_partition, events) => database.transaction((transaction) => copyIn(transaction, statement, copyRows(events))),
  );
  return { rows_per_second: rate, client_us: client, postgres_us: postgres };
}

/** The store's work without Kafka: positions, trimming, each emit once. */
async function appendFromMemory() {
  const { rate, client, postgres } = await writeFromMemory(
    (database) => new AppendRepository(database).positions([0, 1, 2, 3]),
    (database) => {
      const service = new AppendService(new AppendRepository(database), new TrimCounter(), new StreamCounter());
      return (partition, events, offset) =>
        service.append(partition, events, { offset, clock: 0 }, { offset: offset + events.length, clock: 0 });
    },
  );
  return { events_per_second: rate, client_us: client, postgres_us: postgres };
}

/**
 * Rows per second and CPU of a way to write, on a table of maximum size.
 * @param {(database: Database) => Promise<unknown>} prepare
 * @param {(database: Database) => (partition: number, events: object[], offset: number) => Promise<unknown>} writer
 */
async function writeFromMemory(prepare, writer) {
  const { database, drop } = await freshDatabase(schema, { url: stack.databaseUrl, max: PARTITIONS });
  const ids = emitterIds(EMITTERS);
  await prepare(database);
  await fill(database, ids);
  const rows = 400_000;
  const work = Array.from({ length: PARTITIONS }, (_, partition) =>
    batchesOf(new Load(ownEmitters(ids, partition), seededRandom(partition)), partition, rows / PARTITIONS),
  );
  const write = writer(database);
  const [start, ownCpu, cpu] = [performance.now(), process.cpuUsage(), postgresCpu()];
  await Promise.all(
    work.map(async (batches, partition) => {
      for (const [index, batch] of batches.entries()) await write(partition, batch, index * BATCH);
    }),
  );
  const [seconds, { user, system }, cpuEnd] = [(performance.now() - start) / 1000, process.cpuUsage(ownCpu), postgresCpu()];
  await drop();
  return { rate: round(rows / seconds), client: round((user + system) / rows, 1), postgres: microsecondsEach(cpu, cpuEnd, rows) };
}

/**
 * Each emitter in one partition, as in the topic.
 * @param {string[]} ids
 * @param {number} partition
 */
function ownEmitters(ids, partition) {
  return ids.filter((_, index) => index % PARTITIONS === partition);
}

/** CPU seconds that the database server has used so far. */
function postgresCpu() {
  return cpuMs([stack.postgres.pid]) / 1000;
}

/** The app itself over a backlog in Kafka: the first half alone, the second half with readers. */
async function eventStore() {
  const database = await Database.of(schema, { serverUrl: stack.databaseUrl, name: 'event_store', max: 10, log }).open();
  const ids = emitterIds(EMITTERS);
  await produce(new Load(ids, seededRandom(2)));
  await fill(database, ids);
  const [store] = stack.stores;
  await store.start();
  /** @param {number} share */
  const until = async (share) => {
    for (;;) {
      const { rows } = await database.query('SELECT coalesce(sum(next_offset), 0)::bigint AS stored FROM event_progress');
      if (rows[0].stored >= EVENTS * share) {
        return { at: performance.now(), stored: rows[0].stored, app: cpuSeconds(store.pid), postgres: postgresCpu() };
      }
      await sleep(20);
    }
  };
  const [first, half] = [await until(0.05), await until(0.5)];
  const pages = readPages(database, ids);
  const [second, end] = [await until(0.52), await until(0.99)];
  const read = await pages.stop();
  await store.stop();
  await database.close();
  /** @param {typeof first} from @param {typeof first} to */
  const rate = (from, to) => round(((to.stored - from.stored) / (to.at - from.at)) * 1000);
  return {
    events_per_second: rate(first, half),
    app_us: microsecondsEach(first.app, half.app, half.stored - first.stored),
    postgres_us: microsecondsEach(first.postgres, half.postgres, half.stored - first.stored),
    with_readers: { events_per_second: rate(second, end), ...read },
  };
}

/** @param {Load} load */
async function produce(load) {
  const publisher = new Publisher(new KafkaClient(KafkaConfig.read({ KAFKA_BROKERS: stack.brokers }), 'bench', log));
  await publisher.connect();
  for (let sent = 0; sent < EVENTS; sent += 5000)
    await publisher.send(Array.from({ length: Math.min(5000, EVENTS - sent) }, () => load.record()));
  await publisher.close();
}

/**
 * Fills the table to its maximum.
 * @param {Database} database
 * @param {string[]} ids
 */
async function fill(database, ids) {
  await database.query(
    `INSERT INTO event (ms, seq, emitter_id, stream, emit_id, event)
     SELECT 1600000000000 + n, n, id, '', '1' || lpad(n::text, 26, '0'), convert_to('{"note":"' || repeat('x', 250) || '"}', 'UTF8')
     FROM generate_series(1, $2::int) AS n, unnest($1::text[]) AS id`,
    [ids, PRELOADED],
  );
  await database.query('VACUUM ANALYZE event');
  await database.query('CHECKPOINT');
}

/**
 * Requests pages of 10 at a steady rate, as clients do, and finally at the maximum rate.
 * @param {Database} database
 * @param {string[]} ids
 */
function readPages(database, ids) {
  const pages = new EventPagesRepository(database);
  const random = seededRandom(3);
  const readOne = () => pages.page(ids[Math.floor(random() * ids.length)], '', pageWindow({ limit: 10 }), { whole: false, maxBytes: 1e6 });
  /** @type {Promise<number>[]} */
  const read = [];
  const timer = setInterval(() => {
    const start = performance.now();
    read.push(readOne().then(() => performance.now() - start));
  }, 1000 / PAGES_PER_SECOND);
  return {
    stop: async () => {
      clearInterval(timer);
      const pageMs = quantiles(await Promise.all(read));
      const [end, seconds] = [performance.now() + 3000, 3];
      let count = 0;
      const reader = async () => {
        for (; performance.now() < end; count++) await readOne();
      };
      await Promise.all(Array.from({ length: 8 }, reader));
      return { page_ms: pageMs, pages_per_second_alone: round(count / seconds) };
    },
  };
}

/**
 * The size of table and indexes after a while, compared with the minimum: the kept events, packed.
 * @param {number} emitters
 */
async function growthWith(emitters) {
  const { database, drop } = await freshDatabase(schema, { url: stack.databaseUrl, max: PARTITIONS });
  const repository = new AppendRepository(database);
  await repository.positions(Array.from({ length: PARTITIONS }, (_, partition) => partition));
  const ids = emitterIds(emitters);
  // Two and a half times the kept events of this many emitters, limited to a reasonable time.
  const events = Math.min(Math.max(emitters * 250, 600_000), GROWTH_EVENTS);
  const start = performance.now();
  await Promise.all(
    Array.from({ length: PARTITIONS }, async (_, partition) => {
      const service = new AppendService(repository, new TrimCounter(), new StreamCounter());
      const load = new Load(ownEmitters(ids, partition), seededRandom(partition));
      for (let offset = 0; offset < events / PARTITIONS; offset += BATCH) {
        const [batch] = batchesOf(load, partition, BATCH);
        const shifted = batch.map((event, index) => ({
          ...event,
          place: eventPlace({ clock: start + offset, offset: offset + index, partition }),
        }));
        await service.append(partition, shifted, { offset, clock: 0 }, { offset: offset + BATCH, clock: 0 });
      }
    }),
  );
  const seconds = (performance.now() - start) / 1000;
  const used = await sizeOf(database);
  await database.query(
    `DELETE FROM event WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM (SELECT ctid, row_number() OVER (PARTITION BY emitter_id, stream ORDER BY ms DESC, seq DESC) AS nth FROM event) AS newest
       WHERE nth > 100))`,
  );
  await database.query('VACUUM FULL event');
  const least = await sizeOf(database);
  await drop();
  return {
    emitters,
    events,
    events_per_second: round(events / seconds),
    kept: least.rows,
    rows: used.rows,
    megabytes: round(used.bytes / 1e6),
    least_megabytes: round(least.bytes / 1e6),
    factor: round(used.bytes / least.bytes, 2),
  };
}

/** @param {Database} database */
async function sizeOf(database) {
  const { rows } = await database.query("SELECT pg_total_relation_size('event') AS bytes, (SELECT count(*) FROM event) AS rows");
  return rows[0];
}
