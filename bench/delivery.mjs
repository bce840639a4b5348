// npm run bench:delivery [-- --events 60000 --seconds 20 --rounds 3 (0: without neighbours)]
// Compares the whole system with three bare relays on the same machine, in turns: deliveries per second 1 → 1 and 1 → 10, the time from produce to arrival
// at a steady rate, the effect of bad endpoints on healthy ones, and CPU by process.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { KafkaClient, KafkaConfig, Publisher } from '../dist/libs/messaging/src/index.js';
import { createLog } from '../dist/libs/observability/src/index.js';
import { startChild } from './delivery/child.mjs';
import { cpuMeter } from './delivery/cpu.mjs';
import { apiClient, startOwnSystem } from '../scripts/temporary/own-system.mjs';
import { quantiles } from './lib/quantiles.mjs';
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

const system = await startOwnSystem();
const api = apiClient(system);
const receiver = await startChild('receiver-process.mjs');
const generator = await startChild('generator-process.mjs', system.brokers);
const results = /** @type {Record<string, any>} */ ({});
try {
  const { id: owner } = await api('GET', '/users/me');
  const oneToOne = await emitters('One', owner, EMITTERS, () => ['ok']);
  const oneToTen = await emitters('Ten', owner, FAN_OUT_EMITTERS, () => Array.from({ length: FAN_OUT }, () => 'ok'));
  // 1 → 1: 80 endpoints that work, 10 that fail, 10 that hang; and the 80 alone
  const alone = await emitters('Alone', owner, 80, () => ['ok']);
  const mixed = await emitters('Mixed', owner, 100, (n) => [n % 10 === 8 ? 'fail' : n % 10 === 9 ? 'hang' : 'ok']);

  await warmUp(oneToOne);
  results.one_to_one = await throughput('1 → 1', oneToOne, 1);
  results.one_to_ten = await throughput('1 → 10', oneToTen, FAN_OUT);
  results.steady = await steady('at 500/s', oneToOne, STEADY, SECONDS);
  // in turns, so that other load on the machine affects both
  const neighbours = /** @type {{ alone: number[], mixed: number[] }} */ ({ alone: [], mixed: [] });
  for (let round = 0; round < ROUNDS; round++) {
    neighbours.alone.push((await steady('healthy endpoints alone', alone, NEIGHBOURS_PER_SECOND * 0.8, SECONDS)).p99);
    neighbours.mixed.push((await steady('healthy endpoints beside bad ones', mixed, NEIGHBOURS_PER_SECOND, SECONDS, 0.8)).p99);
  }
  results.alone = median(neighbours.alone);
  results.mixed = median(neighbours.mixed);

  await system.apps.stopAll();
  for (const [name, kind] of /** @type {const} */ ([
    ['relay', {}],
    ['durable_relay', { durable: true }],
    ['stock_relay', { durable: true, stock: true }],
  ])) {
    for (const [shape, emitting, fanOut] of /** @type {const} */ ([
      ['one_to_one', oneToOne, 1],
      ['one_to_ten', oneToTen, FAN_OUT],
    ])) {
      results[`${name}_${shape}`] = await relayed(`${name}, 1 → ${fanOut}`, kind, emitting, fanOut);
    }
  }
  console.log(JSON.stringify(summary()));
} finally {
  await Promise.all([receiver.stop(), generator.stop()]);
  await system.stop();
}

function summary() {
  const { one_to_one: one, one_to_ten: ten, steady: calm } = results;
  return {
    bench: 'delivery',
    one_to_one: one.deliveries_per_second,
    one_to_ten: ten.deliveries_per_second,
    relay_one_to_one: results.relay_one_to_one.deliveries_per_second,
    relay_one_to_ten: results.relay_one_to_ten.deliveries_per_second,
    durable_relay_one_to_one: results.durable_relay_one_to_one.deliveries_per_second,
    durable_relay_one_to_ten: results.durable_relay_one_to_ten.deliveries_per_second,
    stock_relay_one_to_one: results.stock_relay_one_to_one.deliveries_per_second,
    stock_relay_one_to_ten: results.stock_relay_one_to_ten.deliveries_per_second,
    p50_ms_at_500: calm.p50,
    p99_ms_at_500: calm.p99,
    durable_relay_p50_ms_at_500: results.durable_relay_one_to_one.calm.p50,
    durable_relay_p99_ms_at_500: results.durable_relay_one_to_one.calm.p99,
    cpu_us: one.cpu_us,
    relay_cpu_us: results.relay_one_to_one.cpu_us,
    durable_relay_cpu_us: results.durable_relay_one_to_one.cpu_us,
    cpu_ratio_to_relay: round(one.cpu_us / results.durable_relay_one_to_one.cpu_us, 2),
    cpu_ratio_to_relay_one_to_ten: round(ten.cpu_us / results.durable_relay_one_to_ten.cpu_us, 2),
    bad_neighbour_p99_ratio: round(results.mixed / results.alone, 2),
    alone_p99_ms: results.alone,
    mixed_p99_ms: results.mixed,
    cpu_seconds: { one_to_one: one.cpu, one_to_ten: ten.cpu },
  };
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
  /** @type {Record<string, string[]>} */
  const routes = {};
  for (const [n, id] of ids.entries()) {
    routes[id] = kinds(n).map((kind, k) => `http://127.0.0.1:${receiver.first.port}/${kind}/${id}-${k}`);
    for (const url of routes[id]) {
      const { id: webhook } = await api('POST', '/webhooks', { url });
      await retried(() => api('POST', '/subscriptions', { emitter_id: id, listener_id: webhook }));
    }
  }
  return { ids, routes };
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
 * At the maximum rate: measured from the first arrival to the last, and until all events are stored.
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
    postgres: 'postgres',
    receiver: receiver.pid,
    generator: generator.pid,
    bench: process.pid,
  }));
  const routingBackends = await databaseCpu();
  const before = await storedEvents();
  const start = performance.timeOrigin + performance.now();
  const generated = generator.ask({ emitters: ids, count });
  const { last, unique, count: posts } = await arrived(count * fanOut);
  await generated;
  const used = cpu();
  const backends = usedBetween(routingBackends, await databaseCpu());
  while ((await storedEvents()) - before < count) await sleep(50);
  const storedAt = performance.timeOrigin + performance.now();
  const seconds = (last - start) / 1000;
  const result = {
    deliveries_per_second: Math.round(unique / seconds),
    events_per_second: Math.round(count / seconds),
    stored_per_second: Math.round((count / (storedAt - start)) * 1000),
    repeated: posts - unique,
    // of the service alone: its process, and its PostgreSQL backends
    cpu_us: round(((used.routing ?? 0) * 1e6 + backends * 1e6) / unique, 1),
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
  // bad endpoints are detected after a while: both measurements start after that
  await receiver.ask('reset');
  await generator.ask({ emitters: ids, count: perSecond * 5, perSecond });
  await sleep(1000);
  await receiver.ask('reset');
  const count = perSecond * seconds;
  const cpu = cpuMeter(() => ({ ...system.pids(), postgres: 'postgres' }));
  await generator.ask({ emitters: ids, count, perSecond });
  await arrived(count * share);
  const { latencies } = await receiver.ask('latencies');
  const result = { ...quantiles(latencies), cpu: cpu() };
  console.log(name, result);
  return result;
}

/**
 * @param {string} name
 * @param {{ durable?: boolean, stock?: boolean }} kind
 * @param {{ ids: string[], routes: Record<string, string[]> }} emitting
 * @param {number} fanOut
 */
async function relayed(name, kind, { ids, routes }, fanOut) {
  const relay = await startChild(
    'relay-process.mjs',
    JSON.stringify({ brokers: system.brokers, databaseUrl: system.databaseUrl, ...kind, routes }),
  );
  const count = Math.ceil(EVENTS / (fanOut === 1 ? 1 : 4));
  await receiver.ask('reset');
  await generator.ask({ emitters: ids, count: 5000 / fanOut });
  await arrived(5000);
  await receiver.ask('reset');
  await sleep(1000);
  const cpu = cpuMeter(() => ({ relay: relay.pid, postgres: 'postgres' }));
  const start = performance.timeOrigin + performance.now();
  const generated = generator.ask({ emitters: ids, count });
  const { last, unique } = await arrived(count * fanOut);
  await generated;
  const used = cpu();
  const calm = fanOut === 1 ? await relayedSteadily(ids) : {};
  await relay.stop();
  const result = {
    deliveries_per_second: Math.round(unique / ((last - start) / 1000)),
    cpu_us: round((((used.relay ?? 0) + (kind.durable ? (used.postgres ?? 0) : 0)) * 1e6) / unique, 1),
    process_us: round(((used.relay ?? 0) * 1e6) / unique, 1),
    calm,
  };
  console.log(name, result);
  return result;
}

/** @param {string[]} ids */
async function relayedSteadily(ids) {
  await receiver.ask('reset');
  const count = STEADY * SECONDS;
  await generator.ask({ emitters: ids, count, perSecond: STEADY });
  await arrived(count);
  return quantiles((await receiver.ask('latencies')).latencies);
}

/** @param {number[]} values */
function median(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
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
 * CPU seconds of the connections to the service's database, by process id.
 * @returns {Promise<Map<number, number>>}
 */
async function databaseCpu() {
  const client = new pg.Client({ connectionString: system.databaseUrl });
  await client.connect();
  const { rows } = await client.query("SELECT pid FROM pg_stat_activity WHERE datname = 'routing'");
  await client.end();
  return new Map(rows.map(({ pid }) => [pid, cpuSeconds(pid) ?? 0]));
}

/** @param {Map<number, number>} before @param {Map<number, number>} after */
function usedBetween(before, after) {
  return [...after].reduce((sum, [pid, seconds]) => sum + seconds - (before.get(pid) ?? 0), 0);
}

/** @param {number} value */
function round(value, digits = 0) {
  return Number(value.toFixed(digits));
}
