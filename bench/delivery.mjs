// npm run bench:delivery [-- --events 60000 --seconds 20 --rounds 3 (0: one round, without neighbours)]
// Compares the whole system with three bare relays, in turns, in each round: deliveries per second 1 → 1 and 1 → 10, the time from produce to arrival
// at a steady rate, the effect of bad endpoints on healthy ones, and CPU by process.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { KafkaClient, KafkaConfig, Publisher } from '../dist/libs/messaging/src/index.js';
import { createLog } from '../dist/libs/observability/src/index.js';
import { startChild } from './delivery/child.mjs';
import { cpuMeter } from './delivery/cpu.mjs';
import { apiClient, startOwnSystem } from '../scripts/temporary/own-system.mjs';
import { median, quantiles } from './lib/quantiles.mjs';
import { cpuSeconds } from './lib/cpu.mjs';

const { values: options } = parseArgs({
  options: {
    events: { type: 'string', default: '60000' },
    seconds: { type: 'string', default: '20' },
    rounds: { type: 'string', default: '3' },
  },
});
const EVENTS = Number(options.events);
const SECONDS = Number(options.seconds);
const EMITTERS = 100;
const FAN_OUT = 10;
/** Fewer emitters there, because each has ten webhooks. */
const FAN_OUT_EMITTERS = 20;
const STEADY = 500;
/** Below the maximum of this machine: above it, everything waits for the processor. */
const NEIGHBOURS_PER_SECOND = 500;
const ROUNDS = Number(options.rounds);
/** The services do not read it, and would deliver events of the topic `events` themselves. Its records are not compressed either. */
const RELAYED = 'workflow-triggers';

const system = await startOwnSystem();
const api = apiClient(system);
const receiver = await startChild('receiver-process.mjs');
const generator = await startChild('generator-process.mjs', system.brokers);
/** By name, one of each round. @type {Record<string, any[]>} */
const results = {};
try {
  const { id: owner } = await api('GET', '/users/me');
  const oneToOne = await emitters('One', owner, EMITTERS, () => ['ok']);
  const oneToTen = await emitters('Ten', owner, FAN_OUT_EMITTERS, () => Array.from({ length: FAN_OUT }, () => 'ok'));
  // 1 → 1: 80 endpoints that work, 10 that fail, 10 that hang; and the 80 alone
  const alone = await emitters('Alone', owner, 80, () => ['ok']);
  const mixed = await emitters('Mixed', owner, 100, (n) => [n % 10 === 8 ? 'fail' : n % 10 === 9 ? 'hang' : 'ok']);

  const relayed = [relayRoutes('RelayOne', EMITTERS, 1), relayRoutes('RelayTen', FAN_OUT_EMITTERS, FAN_OUT)];

  await warmUp(oneToOne);
  // in turns, so that other load on the machine affects all of them
  for (let round = 0; round < Math.max(1, ROUNDS); round++) {
    add('one_to_one', await throughput('1 → 1', oneToOne, 1));
    add('one_to_ten', await throughput('1 → 10', oneToTen, FAN_OUT));
    add('steady', await steady('at 500/s', oneToOne, STEADY, SECONDS));
    for (const [name, kind] of /** @type {const} */ ([
      ['relay', {}],
      ['durable_relay', { durable: true }],
      ['stock_relay', { durable: true, stock: true }],
    ])) {
      for (const emitting of relayed) {
        const shape = emitting.fanOut === 1 ? 'one_to_one' : 'one_to_ten';
        add(`${name}_${shape}`, await measureRelay(`${name}, 1 → ${emitting.fanOut}`, kind, emitting));
      }
    }
  }
  for (let round = 0; round < ROUNDS; round++) {
    add('alone', await steady('healthy endpoints alone', alone, NEIGHBOURS_PER_SECOND * 0.8, SECONDS));
    add('mixed', await steady('healthy endpoints beside bad ones', mixed, NEIGHBOURS_PER_SECOND, SECONDS, 0.8));
  }
  console.log(JSON.stringify(summary()));
} finally {
  await Promise.all([receiver.stop(), generator.stop()]);
  await system.stop();
}

/** @param {string} name @param {object} result */
function add(name, result) {
  (results[name] ??= []).push(result);
}

/** The figures are medians of the rounds; a ratio is that of the two measurements of a round. */
function summary() {
  /** @param {string} name @param {string} figure */
  const middle = (name, figure) => median((results[name] ?? []).map((result) => result[figure]));
  /** @param {string} name @param {string} other @param {string} figure */
  const ratio = (name, other, figure) =>
    median((results[name] ?? []).map((result, round) => result[figure] / results[other]?.[round][figure]));
  return {
    bench: 'delivery',
    one_to_one: middle('one_to_one', 'deliveries_per_second'),
    one_to_ten: middle('one_to_ten', 'deliveries_per_second'),
    relay_one_to_one: middle('relay_one_to_one', 'deliveries_per_second'),
    relay_one_to_ten: middle('relay_one_to_ten', 'deliveries_per_second'),
    durable_relay_one_to_one: middle('durable_relay_one_to_one', 'deliveries_per_second'),
    durable_relay_one_to_ten: middle('durable_relay_one_to_ten', 'deliveries_per_second'),
    stock_relay_one_to_one: middle('stock_relay_one_to_one', 'deliveries_per_second'),
    stock_relay_one_to_ten: middle('stock_relay_one_to_ten', 'deliveries_per_second'),
    ratio_to_relay: ratio('one_to_one', 'durable_relay_one_to_one', 'deliveries_per_second'),
    ratio_to_relay_one_to_ten: ratio('one_to_ten', 'durable_relay_one_to_ten', 'deliveries_per_second'),
    p50_ms_at_500: middle('steady', 'p50'),
    p99_ms_at_500: middle('steady', 'p99'),
    durable_relay_p50_ms_at_500: middle('durable_relay_one_to_one', 'p50'),
    durable_relay_p99_ms_at_500: middle('durable_relay_one_to_one', 'p99'),
    p50_ratio_to_relay: ratio('steady', 'durable_relay_one_to_one', 'p50'),
    p99_ratio_to_relay: ratio('steady', 'durable_relay_one_to_one', 'p99'),
    cpu_us: middle('one_to_one', 'cpu_us'),
    relay_cpu_us: middle('relay_one_to_one', 'cpu_us'),
    durable_relay_cpu_us: middle('durable_relay_one_to_one', 'cpu_us'),
    cpu_ratio_to_relay: ratio('one_to_one', 'durable_relay_one_to_one', 'cpu_us'),
    cpu_ratio_to_relay_one_to_ten: ratio('one_to_ten', 'durable_relay_one_to_ten', 'cpu_us'),
    bad_neighbour_p99_ratio: ratio('mixed', 'alone', 'p99'),
    alone_p99_ms: middle('alone', 'p99'),
    mixed_p99_ms: middle('mixed', 'p99'),
    cpu_seconds: { one_to_one: results.one_to_one?.at(-1).cpu, one_to_ten: results.one_to_ten?.at(-1).cpu },
  };
}

/**
 * Emitters whose events only a relay reads, and their endpoints.
 * @param {string} name
 * @param {number} count
 * @param {number} fanOut
 */
function relayRoutes(name, count, fanOut) {
  const ids = Array.from({ length: count }, (_, n) => `p_${name}${String(n).padStart(5, '0')}`);
  /** @param {string} id */
  const urls = (id) => Array.from({ length: fanOut }, (_, k) => `http://127.0.0.1:${receiver.first.port}/ok/${id}-${k}`);
  return { fanOut, ids, routes: Object.fromEntries(ids.map((id) => [id, urls(id)])) };
}

/**
 * Workflows with webhooks; `kinds` states for each how its endpoints behave.
 * @param {string} name
 * @param {string} owner
 * @param {number} count
 * @param {(n: number) => string[]} kinds
 */
async function emitters(name, owner, count, kinds) {
  const publisher = new Publisher(
    new KafkaClient(KafkaConfig.read({ KAFKA_BROKERS: system.brokers }), 'bench', createLog('bench', 'warn')),
  );
  await publisher.connect();
  const ids = Array.from({ length: count }, (_, n) => `p_${name}${String(n).padStart(5, '0')}`);
  await publisher.send(
    ids.map((id) => ({ topic: 'workflows', key: id, value: JSON.stringify({ id, owner_id: owner, name: id, active: true }) })),
  );
  await publisher.close();
  for (const [n, id] of ids.entries()) {
    for (const [k, kind] of kinds(n).entries()) {
      const url = `http://127.0.0.1:${receiver.first.port}/${kind}/${id}-${k}`;
      const { id: webhook } = await api('POST', '/webhooks', { url });
      await retried(() => api('POST', '/subscriptions', { emitter_id: id, listener_id: webhook }));
    }
  }
  return { ids };
}

/** A workflow exists for the API shortly after its record was written. @param {() => Promise<unknown>} call */
async function retried(call) {
  for (let tries = 0; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (tries === 50) throw error;
      await sleep(100);
    }
  }
}

/** @param {{ ids: string[] }} emitting */
async function warmUp({ ids }) {
  for (let round = 0; round < 3; round++) {
    await receiver.ask('reset');
    await generator.ask({ emitters: ids, count: 5000 });
    await arrived(5000);
  }
}

/**
 * At the maximum rate: measured from the first event that is sent to the last arrival, and until all events are stored.
 * @param {string} name
 * @param {{ ids: string[] }} emitting
 * @param {number} fanOut
 */
async function throughput(name, { ids }, fanOut) {
  const count = Math.ceil(EVENTS / (fanOut === 1 ? 1 : 4));
  await receiver.ask('reset');
  await sleep(1000);
  const cpu = cpuMeter(() => ({
    ...system.pids(),
    receiver: receiver.pid,
    generator: generator.pid,
    bench: process.pid,
  }));
  const backends = await backendCpu('routing');
  const before = await storedEvents();
  const start = performance.timeOrigin + performance.now();
  const generated = generator.ask({ emitters: ids, count });
  const { last, unique, count: posts } = await arrived(count * fanOut);
  await generated;
  const used = cpu();
  const database = await backends();
  while ((await storedEvents()) - before < count) await sleep(50);
  const storedAt = performance.timeOrigin + performance.now();
  const seconds = (last - start) / 1000;
  const result = {
    deliveries_per_second: Math.round(unique / seconds),
    events_per_second: Math.round(count / seconds),
    stored_per_second: Math.round((count / (storedAt - start)) * 1000),
    repeated: posts - unique,
    // of the service alone: its process, and its PostgreSQL backends
    cpu_us: round((((used.routing ?? 0) + database) * 1e6) / unique, 1),
    process_us: round(((used.routing ?? 0) * 1e6) / unique, 1),
    cpu: used,
  };
  console.log(name, result);
  return result;
}

/**
 * At a steady rate; `share` of the events go to endpoints that respond.
 * @param {string} name
 * @param {{ ids: string[] }} emitting
 * @param {number} perSecond
 * @param {number} seconds
 */
async function steady(name, { ids }, perSecond, seconds, share = 1) {
  // bad endpoints are detected after a while: both measurements start after that, and after the last arrival
  await receiver.ask('reset');
  await generator.ask({ emitters: ids, count: perSecond * 5, perSecond });
  await arrived(perSecond * 5 * share);
  await sleep(1000);
  await receiver.ask('reset');
  const count = perSecond * seconds;
  const cpu = cpuMeter(system.pids);
  await generator.ask({ emitters: ids, count, perSecond });
  await arrived(count * share);
  const { latencies } = await receiver.ask('latencies');
  const result = { ...quantiles(latencies), cpu: cpu() };
  console.log(name, result);
  return result;
}

/**
 * A relay beside idle services.
 * @param {string} name
 * @param {{ durable?: boolean, stock?: boolean }} kind
 * @param {ReturnType<typeof relayRoutes>} emitting
 */
async function measureRelay(name, kind, { fanOut, ids, routes }) {
  const relay = await startChild(
    'relay-process.mjs',
    JSON.stringify({ brokers: system.brokers, databaseUrl: system.databaseUrl, ...kind, topic: RELAYED, routes }),
  );
  const count = Math.ceil(EVENTS / (fanOut === 1 ? 1 : 4));
  await receiver.ask('reset');
  await generator.ask({ topic: RELAYED, emitters: ids, count: 5000 / fanOut });
  await arrived(5000);
  await receiver.ask('reset');
  await sleep(1000);
  const cpu = cpuMeter(() => ({ relay: relay.pid }));
  const backends = await backendCpu('postgres');
  const start = performance.timeOrigin + performance.now();
  const generated = generator.ask({ topic: RELAYED, emitters: ids, count });
  const { last, unique } = await arrived(count * fanOut);
  await generated;
  const used = cpu();
  const database = await backends();
  const calm = fanOut === 1 ? await relayedSteadily(ids) : {};
  await relay.stop();
  const result = {
    deliveries_per_second: Math.round(unique / ((last - start) / 1000)),
    // of the relay alone, as that of the service
    cpu_us: round((((used.relay ?? 0) + database) * 1e6) / unique, 1),
    process_us: round(((used.relay ?? 0) * 1e6) / unique, 1),
    ...calm,
  };
  console.log(name, result);
  return result;
}

/** @param {string[]} ids */
async function relayedSteadily(ids) {
  await receiver.ask('reset');
  const count = STEADY * SECONDS;
  await generator.ask({ topic: RELAYED, emitters: ids, count, perSecond: STEADY });
  await arrived(count);
  return quantiles((await receiver.ask('latencies')).latencies);
}

/** @param {number} count */
async function arrived(count) {
  for (let last = 0, since = performance.now(); ;) {
    const state = await receiver.ask('state');
    if (state.unique >= count) return state;
    if (state.unique > last) [last, since] = [state.unique, performance.now()];
    if (performance.now() - since > 60_000) throw new Error(`${state.unique} of ${count} have arrived, and no more arrive`);
    await sleep(20);
  }
}

/** The number of events that the store has read. */
async function storedEvents() {
  const client = new pg.Client({ connectionString: new URL('/event_store', system.databaseUrl).href });
  await client.connect();
  const { rows } = await client.query('SELECT coalesce(sum(next_offset), 0)::int AS stored FROM event_progress');
  await client.end();
  return rows[0].stored;
}

/**
 * CPU seconds that the PostgreSQL backends of a database use from now on, also those that end meanwhile: a pool closes connections that it does not need.
 * @param {string} database
 */
async function backendCpu(database) {
  const client = new pg.Client({ connectionString: system.databaseUrl });
  await client.connect();
  /** @type {Map<number, { first: number, last: number }>} */
  const seen = new Map();
  /** @param {boolean} isFirst */
  const read = async (isFirst) => {
    const { rows } = await client.query('SELECT pid FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()', [database]);
    for (const { pid } of rows) {
      const seconds = cpuSeconds(pid) ?? 0;
      const { first, last } = seen.get(pid) ?? { first: isFirst ? seconds : 0, last: 0 };
      seen.set(pid, { first, last: Math.max(last, seconds) });
    }
  };
  await read(true);
  let isReading = true;
  const reading = (async () => {
    for (; isReading; await sleep(200)) await read(false);
  })();
  return async () => {
    isReading = false;
    await reading;
    await read(false);
    await client.end();
    return [...seen.values()].reduce((sum, { first, last }) => sum + last - first, 0);
  };
}

/** @param {number} value */
function round(value, digits = 0) {
  return Number(value.toFixed(digits));
}
