// npm run bench:runtime — the sandbox alone, a request at an endpoint through a whole system, and 10 000 timers of a minute.
import { createHash } from 'node:crypto';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { ProcessSandbox } from '../dist/apps/runtime/src/sandbox/process-sandbox.js';
import { defaultSandboxConfig } from '../dist/apps/runtime/src/sandbox/sandbox-config.js';
import { withDescendants } from '../scripts/pid-files/process-tree.mjs';
import { removeAtEnd } from '../scripts/shell/keeper.mjs';
import { apiClient, startOwnSystem } from '../scripts/temporary/own-system.mjs';
import { atRate, quantiles } from './lib/quantiles.mjs';
import { cpuMs, cpuSeconds } from './lib/cpu.mjs';
import { pssKb } from './lib/memory.mjs';

const TIMERS = Number(process.env.BENCH_TIMERS ?? 10_000);
const TIMER_SECONDS = Number(process.env.BENCH_TIMER_SECONDS ?? 60);
/** The accounts that own the timers' sources, in equal parts: the runs of one account share a process and a limit. */
const ACCOUNTS = 20;
const PER_SECOND = Number(process.env.BENCH_RATE ?? 50);

const hello =
  "export default { name: 'hello', props: { db: '$.service.db' }, run(e) { this.db.set('n', (this.db.get('n') ?? 0) + 1); this.$emit(e); } }";
const http = "export default { name: 'http', props: { http: '$.interface.http' } }";
const ticking =
  "export default { name: 'ticking', props: { timer: { type: '$.interface.timer', default: { intervalSeconds: 60 } } }, run(e) { this.$emit(e); } }";

/** @param {number} value */
const round = (value, digits = 2) => Number(value.toFixed(digits));

const sandbox = await sandboxAlone();
console.log('sandbox:', sandbox);
const system = await startOwnSystem();
try {
  const api = apiClient(system);
  const endpoint = await requestsStored(api);
  console.log('request → event stored, ms:', endpoint);
  const timers = await timersOfAMinute(api);
  console.log('timers:', timers);
  console.log(JSON.stringify({ bench: 'runtime', ...sandbox, request_to_stored_ms: endpoint, timers }));
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await system.stop();
}

/** Runs, accounts and memory of the sandbox alone. */
async function sandboxAlone() {
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-bench-sandbox-'));
  removeAtEnd(dataDir);
  const sandbox = await ProcessSandbox.start({ ...defaultSandboxConfig, dataDir, trustsComponents: true, maxRuns: 1e9 });
  const component = { hash: createHash('sha256').update(hello).digest('hex'), code: hello };
  let runs = 0;
  /** @param {string} accountId */
  const run = async (accountId) => {
    const start = performance.now();
    const job = { accountId, sourceId: 'dc_1', component, method: /** @type {const} */ ('run'), props: {}, endpoint: null, db: { n: '1' } };
    const outcome = await sandbox.run({ ...job, runId: `r${++runs}`, event: '{"a":1}' });
    if (outcome.status !== 'ok') throw new Error(`a run ended by ${outcome.status}`);
    return performance.now() - start;
  };
  const firsts = [];
  for (let account = 0; account < 20; account++) {
    // as in production: the blank process that was used has been replaced
    await sleep(400);
    firsts.push(await run(`u_${account}`));
  }
  await sleep(500);
  const idle = memoryOf(jailed());
  for (let n = 0; n < 2000; n++) await run('u_0');
  const [cpu, start] = [cpuOfAll(), performance.now()];
  const warm = [];
  for (let n = 0; n < 5000; n++) warm.push(await run('u_0'));
  const used = cpuOfAll() - cpu;
  const alone = {
    per_cpu_second: Math.round(5000 / used),
    per_second: Math.round(5000 / ((performance.now() - start) / 1000)),
    ms: quantiles(warm),
  };
  for (let account = 0; account < 20; account++) for (let n = 0; n < 200; n++) await run(`u_${account}`);
  const busy = memoryOf(jailed());
  await sandbox.close();
  return {
    jail: sandbox.health().jail,
    warm_runs: alone,
    first_run_ms: quantiles(firsts),
    pss_mb: { idle_account: idle, busy_account: busy },
  };
}

/** The descendants of this process. */
function jailed() {
  const all = withDescendants([process.pid]);
  all.delete(process.pid);
  return [...all];
}

/** @param {(number | undefined)[]} pids mean PSS of those with a heap: the jail's program beside each of them is small */
function memoryOf(pids) {
  const nodes = pids.map((pid) => pssKb(pid) / 1024).filter((size) => size > 5);
  return nodes.length === 0 ? null : round(nodes.reduce((sum, size) => sum + size, 0) / nodes.length, 1);
}

function cpuOfAll() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6 + jailed().reduce((sum, pid) => sum + (cpuSeconds(pid) ?? 0), 0);
}

/**
 * From a request at an endpoint to its event in a page of the API.
 * @param {ReturnType<typeof apiClient>} api
 */
async function requestsStored(api) {
  // runs of one source wait for each other, so there are several
  const sources = await Promise.all(Array.from({ length: 10 }, () => api('POST', '/sources', { component_code: http })));
  const store = new pg.Client({ connectionString: system.databaseUrl.replace(/\/[^/]*$/, '/event_store') });
  await store.connect();
  /** @type {Map<number, (at: number) => void>} */
  const awaited = new Map();
  let stopping = false;
  const watching = (async () => {
    // each event once: ids are ordered within a partition only, so the window looks back
    const seen = new Set();
    for (; !stopping; await sleep(2)) {
      const { rows } = await store.query({
        name: 'watch',
        text: `SELECT emit_id, event FROM event WHERE emitter_id = ANY ($1) AND stream = '' AND ms > $2`,
        values: [sources.map(({ id }) => id), Date.now() - 3000],
      });
      for (const row of rows) {
        if (seen.has(row.emit_id)) continue;
        seen.add(row.emit_id);
        awaited.get(JSON.parse(row.event.toString()).body?.n)?.(performance.now());
      }
    }
  })();
  /** @param {number} n */
  const send = (n) =>
    new Promise((resolve, reject) => {
      awaited.set(n, resolve);
      fetch(sources[Math.abs(n) % sources.length].configured_props.http.endpoint_url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ n, text: 'x'.repeat(200) }),
      })
        .then((response) => response.text())
        .catch(reject);
    });
  await atRate({ perSecond: PER_SECOND, seconds: 5 }, (n) => send(-1 - n));
  const measured = quantiles(await atRate({ perSecond: PER_SECOND, seconds: 10 }, send));
  stopping = true;
  await watching;
  await store.end();
  return { per_second: PER_SECOND, ...measured };
}

/**
 * Sources with a one-minute timer, all set at the same moment. Creating 10 000 of them with the API would take minutes: one is created there, and copies
 * of its rows are written to the same tables, each with the phase that the runtime would choose.
 *
 * @param {ReturnType<typeof apiClient>} api
 */
async function timersOfAMinute(api) {
  const { firstTick, phaseOf } = await import('../dist/apps/runtime/src/timers/next-tick.js');
  const source = await api('POST', '/sources', { component_code: ticking });
  /** @type {string[]} */
  const ids = Array.from({ length: TIMERS }, (_, n) => `dc_${createHash('sha256').update(String(n)).digest('hex').slice(0, 7)}`);
  const distinct = [...new Set(ids)];
  const owners = distinct.map((_, n) => `u_bench${String(n % ACCOUNTS).padStart(2, '0')}`);
  const runtime = new pg.Client({ connectionString: system.databaseUrl.replace(/\/[^/]*$/, '/runtime') });
  // if something fails, the database ends before this process
  runtime.on('error', () => {});
  await runtime.connect();
  for (let wait = 0; wait < 200 && (await runtime.query('SELECT FROM timer WHERE source_id = $1', [source.id])).rowCount === 0; wait++)
    await sleep(50);
  const schedule = { interval_seconds: 60, cron: null };
  const now = new Date();
  // the services that look up the owner of an emitter
  for (const service of ['runtime', 'routing']) {
    const directory = new pg.Client({ connectionString: system.databaseUrl.replace(/\/[^/]*$/, `/${service}`) });
    await directory.connect();
    await directory.query(
      `INSERT INTO emitter SELECT (jsonb_populate_record(e, jsonb_build_object('id', copy.id, 'owner_id', copy.owner))).*
       FROM emitter e, unnest($2::text[], $3::text[]) AS copy (id, owner) WHERE e.id = $1`,
      [source.id, distinct, owners],
    );
    await directory.end();
  }
  await runtime.query('BEGIN');
  await runtime.query(
    `INSERT INTO deployment (source_id, owner_id, active, version, code_hash, configured_props, schedules, endpoint_key, name_slug, hooks)
     SELECT copy.id, copy.owner, active, version, code_hash, $4, schedules, NULL, name_slug, hooks
     FROM deployment, unnest($2::text[], $3::text[]) AS copy (id, owner) WHERE source_id = $1`,
    // not the source's own props: they are encrypted, and can be decrypted only for it
    [source.id, distinct, owners, { timer: { intervalSeconds: 60 } }],
  );
  await runtime.query(
    `INSERT INTO timer (source_id, account_id, prop, schedule, next_run_at)
     SELECT id, owner, 'timer', $2, at FROM unnest($1::text[], $3::timestamptz[], $4::text[]) AS t (id, at, owner)`,
    [distinct, JSON.stringify(schedule), distinct.map((id) => firstTick(schedule, phaseOf(id, 'timer'), now)), owners],
  );
  await runtime.query('COMMIT');
  // the first minute is a warm-up and not measured
  await sleep(Math.min(60, TIMER_SECONDS) * 1000);
  const from = new Date();
  const before = usage();
  await sleep(TIMER_SECONDS * 1000);
  const used = usage().map((seconds, index) => round((seconds - before[index]) / TIMER_SECONDS, 3));
  // a run's id ends with the due time of its tick; its row is written with its effects
  const { rows: done } = await runtime.query(
    `SELECT extract(epoch FROM finished_at)::float8 * 1000 - split_part(run_id, '.', 3)::float8 AS late FROM run_done
     WHERE run_id LIKE '%.timer.%' AND finished_at >= $1`,
    [from],
  );
  const ticks = done.map(({ late }) => late);
  const { rows } = await runtime.query(
    "SELECT count(*)::int AS late FROM timer WHERE least(next_run_at, resume_at) < now() - interval '2 seconds'",
  );
  await runtime.end();
  const due = (distinct.length * TIMER_SECONDS) / schedule.interval_seconds;
  if (ticks.length < due / 2) throw new Error(`${ticks.length} runs of timers instead of ${due}`);
  return {
    sources: distinct.length,
    accounts: ACCOUNTS,
    seconds: TIMER_SECONDS,
    runs: ticks.length,
    drift_ms: quantiles(ticks),
    late: rows[0].late,
    cores: { runtime: used[0], postgres: used[1], broker: used[2], event_store: used[3] },
  };
}

/** CPU seconds so far: the runtime with its jailed processes, the database, the broker, the store. */
function usage() {
  const pids = system.pids();
  return [pids.runtime, pids.postgres, pids.broker, pids['event-store']].map((pid) => cpuMs([pid]) / 1000);
}
