// npm run bench:rest — latency and CPU of REST requests through Kafka, compared with Nest's own Kafka client and server on the same broker.
import kafkajs from 'kafkajs';
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { node24 } from '../scripts/setup/node24.mjs';
import { freePort } from '../scripts/shell/ports.mjs';
import { cpuMs } from './lib/cpu.mjs';
import { apiClient, startOwnSystem } from '../scripts/temporary/own-system.mjs';
import { atRate, median, quantiles } from './lib/quantiles.mjs';

const RATES = (process.env.BENCH_RATES ?? '50,200,800').split(',').map(Number);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 3);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);

const system = await startOwnSystem();
const api = apiClient(system);

const admin = new kafkajs.Kafka({ clientId: 'bench', brokers: [system.brokers], logLevel: kafkajs.logLevel.ERROR }).admin();
await admin.connect();
await admin.createTopics({ topics: ['stock.echo', 'stock.echo.reply'].map((topic) => ({ topic, numPartitions: 4 })) });
await admin.disconnect();
const stockPort = await freePort();
/** @param {string[]} args */
const stock = async (...args) => {
  const child = fork(fileURLToPath(new URL('rest/stock-pair.mjs', import.meta.url)), args, {
    execPath: node24(),
    // its log lines about rebalancing are not of interest
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    env: { ...process.env, KAFKAJS_NO_PARTITIONER_WARNING: '1' },
  });
  await new Promise((resolve, reject) =>
    child.once('message', resolve).once('exit', () => reject(new Error(`the stock ${args[0]} ended`))),
  );
  return child;
};
const pair = [await stock('service', system.brokers), await stock('gateway', system.brokers, String(stockPort))];

try {
  const source = await api('POST', '/sources', { component_code: "export default { name: 'bench', run() {} }" });
  const { component_id } = source;
  // several, because the updates of one source wait for each other
  const updated = await Promise.all(Array.from({ length: 20 }, () => api('POST', '/sources', { component_id })));
  let next = 0;
  const { broker, ...ours } = system.pids();
  const [own, theirs] = [
    [broker, ...Object.values(ours)],
    [broker, ...pair.map(({ pid }) => pid)],
  ];
  /** `upTo` is the highest rate at which a kind is called: an account that sends more than its share gets 429.
   * @type {Record<string, { pids: (number | undefined)[], upTo?: number, call: () => Promise<unknown> }>} */
  const kinds = {
    read: { pids: own, call: () => api('GET', `/sources/${source.id}`) },
    summaries: { pids: own, call: () => api('GET', `/sources/${source.id}/event_summaries`) },
    create: {
      pids: own,
      upTo: 200,
      call: () => api('POST', '/sources', { component_id, name: `b ${Math.random()}` }),
    },
    update: {
      pids: own,
      upTo: 200,
      call: () => api('PUT', `/sources/${updated[next++ % updated.length].id}`, { component_id, name: `b ${Math.random()}` }),
    },
    stock: {
      pids: theirs,
      call: async () => {
        const response = await fetch(`http://127.0.0.1:${stockPort}/`);
        if (!response.ok) throw new Error(`stock: ${response.status}`);
        await response.text();
      },
    },
  };
  // warm-up
  for (const { call } of Object.values(kinds)) await atRate({ perSecond: 50, seconds: 3 }, call);
  /** @type {Record<string, { p50: number[], p99: number[], cpu_ms: number[] }>} */
  const rounds = {};
  // the kinds take turns, so that other load on the machine affects all of them
  for (let round = 0; round < ROUNDS; round++) {
    for (const perSecond of RATES) {
      for (const [kind, { pids, upTo = Infinity, call }] of Object.entries(kinds)) {
        if (perSecond > upTo) continue;
        const before = cpuMs(pids);
        const { p50, p99, count } = quantiles(await atRate({ perSecond, seconds: SECONDS }, call));
        const found = (rounds[`${kind} at ${perSecond}/s`] ??= { p50: [], p99: [], cpu_ms: [] });
        found.p50.push(p50);
        found.p99.push(p99);
        found.cpu_ms.push((cpuMs(pids) - before) / count);
      }
    }
  }
  const figures = Object.fromEntries(
    Object.entries(rounds).map(([name, { p50, p99, cpu_ms }]) => [name, { p50: median(p50), p99: median(p99), cpu_ms: median(cpu_ms) }]),
  );
  for (const [name, { p50, p99, cpu_ms }] of Object.entries(figures)) {
    console.log(`${name.padEnd(20)} p50 ${p50} ms, p99 ${p99} ms, CPU ${cpu_ms} ms a request`);
  }
  console.log(JSON.stringify({ bench: 'rest', seconds: SECONDS, rounds: ROUNDS, figures }));
} finally {
  for (const child of pair) child.kill();
  await system.stop();
}
