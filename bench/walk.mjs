// npm run bench:walk — the two flows at low rates: latency and CPU from produce to a webhook, and of REST reads through Kafka.
import { createServer } from 'node:http';
import kafkajs from 'kafkajs';
import { apiClient, startOwnSystem } from '../scripts/temporary/own-system.mjs';
import { cpuByProcess } from './lib/cpu.mjs';
import { atRate, quantiles } from './lib/quantiles.mjs';

const RATES = (process.env.BENCH_RATES ?? '100,500').split(',').map(Number);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 20);

const system = await startOwnSystem();
const api = apiClient(system);
/** @type {Map<number, (at: number) => void>} */
const awaited = new Map();
const receiver = createServer((request, response) => {
  /** @type {Buffer[]} */
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    response.end();
    const { n } = JSON.parse(Buffer.concat(chunks).toString());
    awaited.get(n)?.(performance.now());
    awaited.delete(n);
  });
});
await new Promise((resolve) => receiver.listen(0, '127.0.0.1', () => resolve(undefined)));
const { port } = /** @type {import('node:net').AddressInfo} */ (receiver.address());

const producer = new kafkajs.Kafka({ clientId: 'bench', brokers: [system.brokers], logLevel: kafkajs.logLevel.ERROR }).producer({
  createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
});
await producer.connect();

try {
  const source = await api('POST', '/sources', { component_code: "export default { name: 'bench', props: { http: '$.interface.http' } }" });
  const webhook = await api('POST', `/webhooks?url=${encodeURIComponent(`http://127.0.0.1:${port}/`)}`);
  await api('POST', `/subscriptions?emitter_id=${source.id}&listener_id=${webhook.id}`);

  let sent = 0;
  const deliver = () =>
    new Promise((resolve, reject) => {
      const n = sent++;
      awaited.set(n, resolve);
      producer
        .send({ topic: 'events', acks: -1, messages: [{ key: source.id, value: JSON.stringify({ n, text: 'x'.repeat(200) }) }] })
        .catch(reject);
    });
  /** @type {Record<string, () => Promise<unknown>>} */
  const kinds = {
    produce_to_arrival: deliver,
    users_me: () => api('GET', '/users/me'),
    event_summaries: () => api('GET', `/sources/${source.id}/event_summaries`),
  };
  /** @type {Record<string, Record<string, unknown>>} */
  const measured = {};
  for (const [kind, call] of Object.entries(kinds)) {
    measured[kind] = {};
    for (const perSecond of RATES) {
      await atRate({ perSecond, seconds: 5 }, call);
      const cpu = cpuByProcess(system.pids());
      const { count, ...ms } = quantiles(await atRate({ perSecond, seconds: SECONDS }, call));
      const by = Object.fromEntries(Object.entries(cpu()).map(([name, used]) => [name, Math.round((used * 1000) / count)]));
      const cpu_us = { total: Object.values(by).reduce((sum, each) => sum + each, 0), ...by };
      console.log(`${kind} at ${perSecond}/s:`, { ms, cpu_us });
      measured[kind][perSecond] = { ms, cpu_us };
    }
  }
  console.log(JSON.stringify({ bench: 'walk', ...measured }));
} finally {
  await producer.disconnect();
  receiver.close();
  receiver.closeAllConnections();
  await system.stop();
}
