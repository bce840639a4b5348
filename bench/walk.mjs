// npm run bench:walk — the latency of the two flows: from produce to a webhook, and REST reads through Kafka.
import { createServer } from 'node:http';
import kafkajs from 'kafkajs';
import { apiClient, startOwnSystem } from '../scripts/temporary/own-system.mjs';
import { atRate, quantiles } from './lib/quantiles.mjs';

const PER_SECOND = Number(process.env.BENCH_RATE ?? 100);
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

  /** @param {number} n */
  const deliver = (n) =>
    new Promise((resolve, reject) => {
      awaited.set(n, resolve);
      producer
        .send({ topic: 'events', acks: -1, messages: [{ key: source.id, value: JSON.stringify({ n, text: 'x'.repeat(200) }) }] })
        .catch(reject);
    });
  const load = { perSecond: PER_SECOND, seconds: SECONDS };
  await atRate({ perSecond: PER_SECOND, seconds: 5 }, (n) => deliver(-1 - n));
  const delivery = quantiles(await atRate(load, deliver));
  const reads = async (/** @type {string} */ path) => {
    await atRate({ perSecond: PER_SECOND, seconds: 3 }, () => api('GET', path));
    return quantiles(await atRate(load, () => api('GET', path)));
  };
  const me = await reads('/users/me');
  const summaries = await reads(`/sources/${source.id}/event_summaries`);
  console.log(`produce → webhook at ${PER_SECOND}/s, ms:`, delivery);
  console.log(`GET /users/me at ${PER_SECOND}/s, ms:`, me);
  console.log(`GET event_summaries at ${PER_SECOND}/s, ms:`, summaries);
  console.log(
    JSON.stringify({
      bench: 'walk',
      per_second: PER_SECOND,
      produce_to_arrival_ms: delivery,
      users_me_ms: me,
      event_summaries_ms: summaries,
    }),
  );
} finally {
  await producer.disconnect();
  receiver.close();
  receiver.closeAllConnections();
  await system.stop();
}
