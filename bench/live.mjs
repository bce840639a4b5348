// npm run bench:live [-- --rate 500 --seconds 15 --clients 1000 --shared-rate 20]
// From the producer to the client of a live stream: many events for one client, and a thousand clients of one emitter.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import kafkajs from 'kafkajs';
import { apiClient, startOwnSystem } from '../scripts/temporary/own-system.mjs';
import { quantiles } from './lib/quantiles.mjs';
import { cpuSeconds } from './lib/cpu.mjs';

const { values: options } = parseArgs({
  options: {
    rate: { type: 'string', default: '500' },
    seconds: { type: 'string', default: '15' },
    clients: { type: 'string', default: '1000' },
    'shared-rate': { type: 'string', default: '20' },
  },
});
const SECONDS = Number(options.seconds);
const WARM_UP_SECONDS = 3;

const system = await startOwnSystem();
const api = apiClient(system);
const producer = new kafkajs.Kafka({ clientId: 'bench', brokers: [system.brokers], logLevel: kafkajs.logLevel.ERROR }).producer({
  createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
});
await producer.connect();

try {
  const alone = await measure({ clients: 1, perSecond: Number(options.rate) });
  console.log(`1 client, ${options.rate} events/s:`, alone);
  const many = await measure({ clients: Number(options.clients), perSecond: Number(options['shared-rate']) });
  console.log(`${options.clients} clients of one emitter, ${options['shared-rate']} events/s:`, many);
  console.log(JSON.stringify({ bench: 'live', one_client: alone, many_clients: many }));
} finally {
  await producer.disconnect();
  await system.stop();
}

/** @param {{ clients: number, perSecond: number }} load */
async function measure({ clients, perSecond }) {
  const source = await api('POST', '/sources', { component_code: "export default { name: 'bench', props: { http: '$.interface.http' } }" });
  // a separate process: its CPU does not count, and a busy reader must not delay the producer
  const readers = fork(new URL('live/readers.mjs', import.meta.url));
  const connecting = performance.now();
  readers.send({ url: `${system.apiUrl}/sources/${source.id}/sse`, apiKey: system.apiKey, clients });
  await once(readers, 'message');
  const connectedMs = performance.now() - connecting;
  await emitAt(source.id, { perSecond, seconds: WARM_UP_SECONDS });
  readers.send({ reset: true });
  await once(readers, 'message');
  const gateway = system.pids().gateway;
  const [cpu, start] = [cpuSeconds(gateway), performance.now()];
  const events = await emitAt(source.id, { perSecond, seconds: SECONDS });
  const [cpuUsed, seconds] = [difference(cpu, cpuSeconds(gateway)), (performance.now() - start) / 1000];
  readers.send({ expect: events * clients });
  const [{ latencies, count }] = await once(readers, 'message');
  readers.kill();
  return {
    clients,
    events_per_second: Math.round(events / seconds),
    sent_per_second: Math.round((events * clients) / seconds),
    missed: events * clients - count,
    produce_to_client_ms: quantiles(latencies),
    gateway_cpu_percent: cpuUsed === null ? null : Math.round((cpuUsed / seconds) * 100),
    gateway_cpu_us_each: cpuUsed === null ? null : Math.round((cpuUsed / (events * clients)) * 1e6),
    connected_ms: Math.round(connectedMs),
  };
}

/**
 * Emits at a steady rate, whether earlier events have been accepted or not; each contains its due time.
 * @param {string} emitterId
 * @param {{ perSecond: number, seconds: number }} load
 */
async function emitAt(emitterId, { perSecond, seconds }) {
  const started = Date.now();
  const sends = [];
  const count = perSecond * seconds;
  for (let n = 0; n < count; n++) {
    const due = started + (n * 1000) / perSecond;
    const wait = due - Date.now();
    if (wait > 1) await new Promise((resolve) => setTimeout(resolve, wait));
    const value = JSON.stringify({ due, text: 'x'.repeat(200) });
    sends.push(producer.send({ topic: 'events', acks: -1, messages: [{ key: emitterId, value }] }));
  }
  await Promise.all(sends);
  return count;
}

/** @param {number | null} from @param {number | null} to */
function difference(from, to) {
  return from === null || to === null ? null : to - from;
}
