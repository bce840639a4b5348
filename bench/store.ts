// npm run bench:store [-- --emitters 10000 --events 900000]
// Events per second and CPU of the event store beside plain COPY of the same rows on the same machine; pages meanwhile;
// how the table grows. It starts a broker and a database of its own, as durable as in production.
import { parseArgs } from 'node:util';
import { AppendRepository } from '../apps/event-store/src/append/append.repository.js';
import { AppendService } from '../apps/event-store/src/append/append.service.js';
import { copyIn } from '../apps/event-store/src/append/copy-in.js';
import { COPIED_COLUMNS, copyRows } from '../apps/event-store/src/append/copy-rows.js';
import { TrimCounter } from '../apps/event-store/src/append/trim-counter.js';
import { EventPagesRepository } from '../apps/event-store/src/pages/event-pages.repository.js';
import { pageWindow } from '../apps/event-store/src/pages/page-window.js';
import { type EmittedEvent, type EmitterId, EVENTS_TOPIC, eventPlace } from '#contracts';
import { Database } from '#database';
import { createKafka, Publisher } from '#messaging';
import { createLog } from '#observability';
import { freshDatabase } from '#testing';
import { emitterIds, Load, seededRandom } from './store-load.js';
import { cpuSeconds, startStoreStack, type StoreStack } from './store-stack.js';

const { values: options } = parseArgs({
  options: { emitters: { type: 'string', default: '10000' }, events: { type: 'string', default: '900000' } },
});
const EMITTERS = Number(options.emitters);
const EVENTS = Number(options.events);
/** As many as the store's partitions, which it takes in side by side. */
const WRITERS = 4;
const BATCH = 4000;
const PRELOADED = 150;
const PAGES_PER_SECOND = 50;

const log = createLog('bench', 'warn');
const say = (line: string): void => console.log(line);
const round = (value: number, digits = 0): number => Number(value.toFixed(digits));
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const stack = await startStoreStack({ partitions: WRITERS, log: say });
try {
  const copy = await plainCopy(stack);
  say(`plain COPY: ${copy.rowsPerSecond} rows/s, ${copy.postgresUs} µs of PostgreSQL's CPU each`);
  const store = await eventStore(stack);
  say(`event store: ${store.eventsPerSecond} events/s, ${store.appUs} µs of its own CPU and ${store.postgresUs} of PostgreSQL's each`);
  say(`with readers: ${store.eventsPerSecondWithReaders} events/s, ${JSON.stringify(store.pages)}`);
  const growth = [];
  for (const emitters of [100, EMITTERS, 1_000_000]) {
    growth.push(await growthOf(stack, emitters));
    say(`growth: ${JSON.stringify(growth.at(-1))}`);
  }
  const ratio = round(store.eventsPerSecond / copy.rowsPerSecond, 3);
  say(JSON.stringify({ bench: 'store', ratio_to_copy: ratio, emitters: EMITTERS, copy, store, growth }));
} finally {
  await stack.stop();
}

/** Rows of a partition's batches as the store writes them. */
function batchesOf(load: Load, partition: number, count: number): EmittedEvent[][] {
  const start = Date.now();
  return Array.from({ length: Math.ceil(count / BATCH) }, (_, batch) =>
    Array.from({ length: BATCH }, (_, index): EmittedEvent => {
      const offset = batch * BATCH + index;
      const { emitterId, emitId, value } = load.next();
      return {
        kind: 'event',
        place: eventPlace({ clock: start + Math.floor(offset / 20), offset, partition }),
        emitterId,
        stream: '',
        emitId,
        json: value,
        hops: 0,
      };
    }),
  );
}

/** The limit: the same rows, ready-made, into the same table with nothing but its primary key; nothing is deleted. */
async function plainCopy({ databaseUrl }: StoreStack) {
  const { database, drop } = await freshDatabase('event_store', { url: databaseUrl, max: WRITERS });
  await database.query('DROP INDEX event_emitted_once');
  const rows = 400_000;
  const load = new Load(emitterIds(EMITTERS), seededRandom(1));
  const work = Array.from({ length: WRITERS }, (_, partition) => batchesOf(load, partition, rows / WRITERS).map(copyRows));
  const statement = `COPY event (${COPIED_COLUMNS}) FROM STDIN (FORMAT binary)`;
  const [start, cpu] = [performance.now(), cpuSeconds('postgres')];
  await Promise.all(
    work.map(async (batches) => {
      for (const batch of batches) await database.transaction((transaction) => copyIn(transaction, statement, batch));
    }),
  );
  const [seconds, cpuEnd] = [(performance.now() - start) / 1000, cpuSeconds('postgres')];
  await drop();
  return { rowsPerSecond: round(rows / seconds), postgresUs: perEvent(cpu, cpuEnd, rows) };
}

function perEvent(start: number | null, end: number | null, events: number): number | null {
  return start === null || end === null ? null : round(((end - start) / events) * 1e6, 1);
}

/** The app itself over a backlog in Kafka, on a table as full as it gets: the first half of it alone, then with readers. */
async function eventStore(stack: StoreStack) {
  const database = new Database(stack.databaseUrl, 'event_store', log);
  const ids = emitterIds(EMITTERS);
  await produce(stack, new Load(ids, seededRandom(2)), EVENTS);
  await fill(database, ids, PRELOADED);
  const app = await stack.startStore();
  if (!app) throw new Error('the event store did not start');
  const stored = async () => {
    const { rows } = await database.query<{ stored: number }>('SELECT coalesce(sum(next_offset), 0)::bigint AS stored FROM event_progress');
    return rows[0]?.stored ?? 0;
  };
  const until = async (share: number) => {
    for (;;) {
      const now = await stored();
      if (now >= EVENTS * share) return { at: performance.now(), stored: now, app: cpuSeconds(app.pid), postgres: cpuSeconds('postgres') };
      await sleep(20);
    }
  };
  const [first, half] = [await until(0.05), await until(0.5)];
  const readers = readPages(database, ids);
  const [second, end] = [await until(0.52), await until(0.99)];
  const pages = await readers.stop();
  await app.stop();
  await database.pool.end();
  const rate = (from: typeof first, to: typeof first) => round(((to.stored - from.stored) / (to.at - from.at)) * 1000);
  return {
    eventsPerSecond: rate(first, half),
    appUs: perEvent(first.app, half.app, half.stored - first.stored),
    postgresUs: perEvent(first.postgres, half.postgres, half.stored - first.stored),
    eventsPerSecondWithReaders: rate(second, end),
    pages,
  };
}

async function produce({ brokers }: StoreStack, load: Load, count: number): Promise<void> {
  const publisher = new Publisher(createKafka({ brokers: [brokers] }, 'bench', log));
  await publisher.connect();
  for (let sent = 0; sent < count; sent += 5000) {
    await publisher.send(Array.from({ length: Math.min(5000, count - sent) }, () => ({ topic: EVENTS_TOPIC, ...load.next() })));
  }
  await publisher.close();
}

/** The middle between a stream that was trimmed just now and one that will be at once. */
async function fill(database: Database, ids: EmitterId[], each: number): Promise<void> {
  await database.query(
    `INSERT INTO event (ms, seq, emitter_id, stream, emit_id, event)
     SELECT 1700000000000 + n, n, id, '', '1' || lpad(n::text, 26, '0'), convert_to('{"note":"' || repeat('x', 250) || '"}', 'UTF8')
     FROM generate_series(1, $2::int) AS n, unnest($1::text[]) AS id`,
    [ids, each],
  );
  await database.query('VACUUM ANALYZE event');
  await database.query('CHECKPOINT');
}

/** Asks for pages of 10 at a steady rate, as clients do. */
function readPages(database: Database, ids: EmitterId[]) {
  const pages = new EventPagesRepository(database);
  const random = seededRandom(3);
  const durations: number[] = [];
  const running = new Set<Promise<void>>();
  const timer = setInterval(() => {
    const start = performance.now();
    const emitter = ids[Math.floor(random() * ids.length)] as EmitterId;
    const page = pages
      .page(emitter, '', pageWindow({ limit: 10 }), { whole: false, maxBytes: 1e6 })
      .then(() => void durations.push(performance.now() - start))
      .finally(() => running.delete(page));
    running.add(page);
  }, 1000 / PAGES_PER_SECOND);
  const stop = async () => {
    clearInterval(timer);
    await Promise.all(running);
    durations.sort((a, b) => a - b);
    const quantile = (share: number) => round(durations[Math.floor(durations.length * share)] ?? 0, 1);
    return { read: durations.length, p50_ms: quantile(0.5), p99_ms: quantile(0.99), saturated_per_second: await saturate(pages, ids) };
  };
  return { stop };
}

/** Pages per second with as many readers as are of use. */
async function saturate(pages: EventPagesRepository, ids: EmitterId[]): Promise<number> {
  const [end, random] = [performance.now() + 3000, seededRandom(4)];
  let read = 0;
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (; performance.now() < end; read++) {
        await pages.page(ids[Math.floor(random() * ids.length)] as EmitterId, '', pageWindow({ limit: 10 }), {
          whole: false,
          maxBytes: 1e6,
        });
      }
    }),
  );
  return round(read / 3);
}

/** The size of table and indexes against what would be the least: what is kept, packed. */
async function growthOf({ databaseUrl }: StoreStack, emitters: number) {
  const { database, drop } = await freshDatabase('event_store', { url: databaseUrl, max: WRITERS });
  const repository = new AppendRepository(database);
  await repository.positions(Array.from({ length: WRITERS }, (_, partition) => partition));
  const ids = emitterIds(emitters);
  const events = 600_000;
  // so few emitters that each is full, or one of a million that has hardly any
  const load = new Load(ids, seededRandom(5));
  const start = performance.now();
  for (let partition = 0; partition < WRITERS; partition++) {
    const service = new AppendService(repository, new TrimCounter());
    const batches = batchesOf(load, partition, events / WRITERS);
    for (const [index, batch] of batches.entries()) {
      await service.append(partition, batch, { offset: index * BATCH, clock: 0 }, { offset: (index + 1) * BATCH, clock: 0 });
    }
  }
  const seconds = (performance.now() - start) / 1000;
  const size = async () => {
    const { rows } = await database.query<{ bytes: number; stored: number }>(
      "SELECT pg_total_relation_size('event') AS bytes, (SELECT count(*) FROM event) AS stored",
    );
    return rows[0] ?? { bytes: 0, stored: 0 };
  };
  const used = await size();
  await database.query(
    `DELETE FROM event WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM (SELECT ctid, row_number() OVER (PARTITION BY emitter_id, stream ORDER BY ms DESC, seq DESC) AS nth FROM event) AS newest WHERE nth > 100))`,
  );
  await database.query('VACUUM FULL event');
  const least = await size();
  await drop();
  return {
    emitters,
    events,
    eventsPerSecond: round(events / seconds),
    kept: least.stored,
    rows: used.stored,
    megabytes: round(used.bytes / 1e6),
    least_megabytes: round(least.bytes / 1e6),
    factor: round(used.bytes / least.bytes, 2),
  };
}
