// npm run bench:scale — the latency, the rate and the CPU of deliveries with many subscriptions and webhooks of one account, with many emitters, with one hot
// emitter, and with two replicas of each service. Prints a table and one JSON line.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { KafkaClient, KafkaConfig, Publisher } from '../dist/libs/messaging/src/index.js';
import { createLog } from '../dist/libs/observability/src/index.js';
import { startChild } from './delivery/child.mjs';
import { cpuMs } from './lib/cpu.mjs';
import { apiClient, startOwnSystem } from '../scripts/temporary/own-system.mjs';
import { quantiles } from './lib/quantiles.mjs';

const { values: options } = parseArgs({
  options: {
    events: { type: 'string', default: '20000' },
    seconds: { type: 'string', default: '10' },
    subscriptions: { type: 'string', default: '10000,1000000' },
    emitters: { type: 'string', default: '10000,100000' },
  },
});
const EVENTS = Number(options.events);
const SECONDS = Number(options.seconds);
const numbers = (/** @type {string} */ list) => list.split(',').filter(Boolean).map(Number);
const STEADY = 500;
const HOT = 5000;
/** They have a webhook and a subscription each. */
const EMITTERS = 100;
/** How many rows a statement inserts. */
const BATCH = 100_000;
/** The services that know every emitter. */
const DIRECTORIES = ['routing', 'event_store', 'gateway', 'runtime'];

const system = await startOwnSystem();
const api = apiClient(system);
const receiver = await startChild('receiver-process.mjs');
const generator = await startChild('generator-process.mjs', system.brokers);
/** @type {Record<string, any>} */
const results = {};
try {
  const { id: owner } = await api('GET', '/users/me');
  const ids = await connectedEmitters(owner);
  await load(ids, EVENTS);
  await measure('base', ids);
  for (const count of numbers(options.subscriptions)) {
    await fillSubscriptions(ids[0] ?? '', count);
    await measure(`subscriptions_${count}`, ids);
  }
  await clear();
  for (const count of numbers(options.emitters)) await measure(`emitters_${count}`, await fillEmitters(ids, count));
  await clear();
  results.hot_emitter = { at_per_second: HOT, ...(await steady(ids.slice(0, 1), HOT)) };
  show('hot_emitter');
  await measure('base_again', ids);
  await system.addReplicas();
  // their consumers take over half of the partitions
  await sleep(5000);
  await load(ids, EVENTS);
  await measure('two_replicas', ids);
  console.log(JSON.stringify({ bench: 'scale', ...results }));
} finally {
  await Promise.all([receiver.stop(), generator.stop()]);
  await system.stop();
}

/** @param {string} name */
function show(name) {
  console.log(name, results[name]);
}

/** @param {string} name @param {string[]} ids of the emitters that emit in turns */
async function measure(name, ids) {
  results[name] = { ...(await rate(ids)), ...(await steady(ids, STEADY)) };
  show(name);
}

/** As fast as possible. @param {string[]} ids */
async function rate(ids) {
  await receiver.ask('reset');
  await sleep(1000);
  const before = cpuMs(Object.values(system.pids()));
  const start = performance.timeOrigin + performance.now();
  const { last } = await load(ids, EVENTS);
  const cpu = cpuMs(Object.values(system.pids())) - before;
  return { per_second: Math.round(EVENTS / ((last - start) / 1000)), cpu_us: Math.round((cpu * 1000) / EVENTS) };
}

/** @param {string[]} ids @param {number} perSecond */
async function steady(ids, perSecond) {
  await load(ids, perSecond * 2, perSecond);
  await receiver.ask('reset');
  const before = cpuMs(Object.values(system.pids()));
  const count = perSecond * SECONDS;
  await load(ids, count, perSecond);
  const cpu = cpuMs(Object.values(system.pids())) - before;
  const { p50, p99 } = quantiles((await receiver.ask('latencies')).latencies);
  return { p50_ms: p50, p99_ms: p99, steady_cpu_us: Math.round((cpu * 1000) / count) };
}

/** Emits events and waits until all of them have arrived. @param {string[]} ids @param {number} count @param {number} [perSecond] */
async function load(ids, count, perSecond) {
  const before = (await receiver.ask('state')).unique;
  await generator.ask({ emitters: ids, count, perSecond });
  for (let last = 0, since = performance.now(); ;) {
    const state = await receiver.ask('state');
    if (state.unique - before >= count) return state;
    if (state.unique > last) [last, since] = [state.unique, performance.now()];
    if (performance.now() - since > 60_000) throw new Error(`${state.unique - before} of ${count} have arrived, and no more arrive`);
    await sleep(20);
  }
}

/** Workflows that have a webhook each. @param {string} owner */
async function connectedEmitters(owner) {
  const publisher = new Publisher(
    new KafkaClient(KafkaConfig.read({ KAFKA_BROKERS: system.brokers }), 'bench', createLog('bench', 'warn')),
  );
  await publisher.connect();
  const ids = Array.from({ length: EMITTERS }, (_, n) => `p_Base${String(n).padStart(5, '0')}`);
  await publisher.send(
    ids.map((id) => ({ topic: 'workflows', key: id, value: JSON.stringify({ id, owner_id: owner, name: id, active: true }) })),
  );
  await publisher.close();
  await sleep(2000);
  for (const id of ids) {
    const { id: webhook } = await api('POST', '/webhooks', { url: `http://127.0.0.1:${receiver.first.port}/ok/${id}` });
    await api('POST', '/subscriptions', { emitter_id: id, listener_id: webhook });
  }
  return ids;
}

/**
 * Fills in other webhooks up to this number, each of which is subscribed to an emitter that does not emit: rows like those that the REST API has made, because a million requests would take
 * hours.
 * @param {string} id of an emitter with a subscription, which is copied
 * @param {number} total
 */
async function fillSubscriptions(id, total) {
  await inDatabase('routing', async (query) => {
    const { rows } = await query("SELECT count(*)::int AS count FROM webhook WHERE id LIKE 'wh_Other%'", []);
    for (let from = rows[0].count; from < total; from += BATCH) {
      const to = Math.min(from + BATCH, total) - 1;
      const copies = (/** @type {string} */ table, /** @type {string} */ changes) =>
        `INSERT INTO ${table} SELECT (jsonb_populate_record(r, ${changes})).* FROM s, ${table} r, generate_series($2::int, $3::int) n`;
      const example = 'WITH s AS (SELECT id, listener_id FROM subscription WHERE emitter_id = $1)';
      await query(`${example} ${copies('webhook', "jsonb_build_object('id', 'wh_Other' || n)")} WHERE r.id = s.listener_id`, [
        id,
        from,
        to,
      ]);
      const changes = "jsonb_build_object('id', 'sub_Other' || n, 'emitter_id', 'p_Other' || n, 'listener_id', 'wh_Other' || n)";
      await query(`${example} ${copies('subscription', changes)} WHERE r.id = s.id`, [id, from, to]);
    }
    await query('VACUUM ANALYZE webhook', []);
    await query('VACUUM ANALYZE subscription', []);
  });
}

/** Fills in other emitters, whose events go to the webhooks in turns. @param {string[]} ids @param {number} total */
async function fillEmitters(ids, total) {
  const others = Array.from({ length: total }, (_, n) => `p_Other${n}`);
  for (const name of DIRECTORIES) {
    await inDatabase(name, async (query) => {
      await query(
        `INSERT INTO emitter SELECT (jsonb_populate_record(e, jsonb_build_object('id', o.id))).* FROM emitter e, unnest($2::text[]) AS o (id)
         WHERE e.id = $1 ON CONFLICT DO NOTHING`,
        [ids[0], others],
      );
      await query('ANALYZE emitter', []);
    });
  }
  await inDatabase('routing', async (query) => {
    await query(
      `INSERT INTO subscription
       SELECT (jsonb_populate_record(s, jsonb_build_object('id', 'sub_' || o.id, 'emitter_id', o.id))).*
       FROM unnest($2::text[]) WITH ORDINALITY AS o (id, n) JOIN subscription s ON s.emitter_id = ($1::text[])[1 + o.n % cardinality($1::text[])]
       ON CONFLICT DO NOTHING`,
      [ids, others],
    );
    await query('VACUUM ANALYZE subscription', []);
  });
  return others;
}

/** Removes what was filled in. */
async function clear() {
  await inDatabase('routing', async (query) => {
    await query("DELETE FROM subscription WHERE emitter_id LIKE 'p_Other%'", []);
    await query("DELETE FROM webhook WHERE id LIKE 'wh_Other%'", []);
    await query('VACUUM ANALYZE subscription', []);
    await query('VACUUM ANALYZE webhook', []);
  });
}

/**
 * @param {string} name
 * @param {(query: (text: string, values: unknown[]) => Promise<pg.QueryResult>) => Promise<void>} work
 */
async function inDatabase(name, work) {
  const client = new pg.Client({ connectionString: new URL(`/${name}`, system.databaseUrl).href });
  await client.connect();
  try {
    await work((text, values) => client.query(text, values));
  } finally {
    await client.end();
  }
}
