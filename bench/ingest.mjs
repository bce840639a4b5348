// npm run bench:ingest — how events come in: published over HTTP (singly and in batches), through a source's endpoint, and by a Kafka producer.
import { readFile } from 'node:fs/promises';
import { KafkaClient, KafkaConfig, Publisher } from '../dist/libs/messaging/src/index.js';
import { createLog } from '../dist/libs/observability/src/index.js';
import { ksuid } from '../dist/libs/contracts/src/index.js';
import { eventRecord } from '../dist/libs/events/src/index.js';
import { openConnections, postBytes } from './ingest/connections.mjs';
import { cpuByProcess } from './lib/cpu.mjs';
import { apiClient, startOwnSystem } from '../scripts/temporary/own-system.mjs';
import { atRate, median, quantiles } from './lib/quantiles.mjs';

const EVENTS = Number(process.env.BENCH_EVENTS ?? 20_000);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 5);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
const CONNECTIONS = Number(process.env.BENCH_CONNECTIONS ?? 64);
const BATCH = 100;
/** Events per second at which latencies are measured. */
const RATE = 500;
/** An endpoint runs code for each request: it gets a share of the load. */
const ENDPOINT_SHARE = 0.1;
const EMITTERS = 20;
const NOTE = 'x'.repeat(220);

const system = await startOwnSystem();
const api = apiClient(system);
const kafka = new KafkaClient(KafkaConfig.read({ KAFKA_BROKERS: system.brokers }), 'bench', createLog('bench', 'warn'));
const publisher = new Publisher(kafka);
await publisher.connect();
const admin = kafka.admin();
await admin.connect();

/** Records in the topic `events`. */
const inLog = async () => (await admin.fetchTopicOffsets('events')).reduce((sum, { high }) => sum + Number(high), 0);

try {
  /** @type {string[]} */
  const emitters = [];
  for (let n = 0; n < EMITTERS; n++) emitters.push((await api('POST', '/sources', { key: 'manual', name: `bench ${n}` })).id);
  const component_code = await readFile(new URL('../components/http-request.mjs', import.meta.url), 'utf8');
  /** @type {string[]} */
  const endpoints = [];
  for (let n = 0; n < EMITTERS; n++) {
    const { configured_props } = await api('POST', '/sources', {
      component_code,
      configured_props: { bodyOnly: true },
      name: `endpoint ${n}`,
    });
    endpoints.push(configured_props.http.endpoint_url);
  }
  const connections = {
    api: await openConnections(system.apiUrl, CONNECTIONS),
    endpoint: await openConnections(endpoints[0] ?? '', CONNECTIONS),
  };
  let made = 0;
  const event = () => ({ n: made++, note: NOTE });
  const next = () => emitters[made % EMITTERS] ?? '';
  /** @param {string} type @param {unknown} body */
  const published = (type, body) =>
    connections.api.send(
      postBytes(
        `${system.apiUrl}/sources/${next()}/events`,
        { authorization: `Bearer ${system.apiKey}`, 'content-type': type },
        JSON.stringify(body),
      ),
    );
  const structured = () => ({ specversion: '1.0', id: ksuid(), source: '/bench', type: 'default', data: event() });
  /** @type {Record<string, { size: number, share: number, send: () => Promise<void> }>} */
  const ways = {
    single: { size: 1, share: 1, send: () => published('application/json', event()) },
    batch: {
      size: BATCH,
      share: 1,
      send: () => published('application/cloudevents-batch+json', Array.from({ length: BATCH }, structured)),
    },
    endpoint: {
      size: 1,
      share: ENDPOINT_SHARE,
      send: () => {
        const url = endpoints[made % EMITTERS] ?? '';
        return connections.endpoint.send(postBytes(url, { 'content-type': 'application/json' }, JSON.stringify(event())));
      },
    },
    kafka: {
      size: 1,
      share: 1,
      send: () => {
        const emitterId = /** @type {any} */ (next());
        const json = Buffer.from(JSON.stringify(event()));
        return publisher.send([{ topic: 'events', ...eventRecord({ emitterId, stream: '', emitId: ksuid(), json }) }]);
      },
    },
  };
  /** As fast as it goes, with as many requests in flight as there are connections; ends when the log has all events. */
  const flood = async (/** @type {(typeof ways)[string]} */ { size, share, send }) => {
    const calls = Math.ceil((EVENTS * share) / size);
    const [before, started] = [await inLog(), performance.now()];
    let left = calls;
    await Promise.all(
      Array.from({ length: CONNECTIONS }, async () => {
        while (left-- > 0) await send();
      }),
    );
    while ((await inLog()) < before + calls * size) await new Promise((resolve) => setTimeout(resolve, 5));
    return { events: calls * size, seconds: (performance.now() - started) / 1000 };
  };

  for (const [name, way] of Object.entries(ways)) {
    console.error(`… warming up: ${name}`);
    await flood({ ...way, share: way.share / 4 });
  }
  /** @type {Record<string, { per_second: number[], p50_ms: number[], p99_ms: number[], cpu_us: Record<string, number[]> }>} */
  const rounds = {};
  // the ways take turns: what else the machine does meets all of them
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, way] of Object.entries(ways)) {
      const found = (rounds[name] ??= { per_second: [], p50_ms: [], p99_ms: [], cpu_us: {} });
      const cpu = cpuByProcess(system.pids());
      const { events, seconds } = await flood(way);
      // the store and the router are done with it too
      await new Promise((resolve) => setTimeout(resolve, 1000));
      found.per_second.push(events / seconds);
      for (const [process, used] of Object.entries(cpu())) (found.cpu_us[process] ??= []).push((used * 1000) / events);
      const { p50, p99 } = quantiles(await atRate({ perSecond: (RATE * way.share) / way.size, seconds: SECONDS }, way.send));
      found.p50_ms.push(p50);
      found.p99_ms.push(p99);
    }
  }
  /** @param {number[]} values */
  const middle = (values) => median(values, 1);
  const figures = Object.fromEntries(
    Object.entries(rounds).map(([name, { per_second, p50_ms, p99_ms, cpu_us }]) => {
      const byProcess = Object.fromEntries(Object.entries(cpu_us).map(([process, values]) => [process, middle(values)]));
      const total = middle([Object.values(byProcess).reduce((sum, value) => sum + value, 0)]);
      return [name, { per_second: middle(per_second), p50_ms: middle(p50_ms), p99_ms: middle(p99_ms), cpu_us: { total, ...byProcess } }];
    }),
  );
  for (const [name, { per_second, p50_ms, p99_ms, cpu_us }] of Object.entries(figures)) {
    console.log(`${name.padEnd(9)} ${per_second} events/s, acknowledged in p50 ${p50_ms} p99 ${p99_ms} ms; CPU µs per event:`, cpu_us);
  }
  console.log(
    JSON.stringify({ bench: 'ingest', events: EVENTS, connections: CONNECTIONS, batch: BATCH, rounds: ROUNDS, rate: RATE, figures }),
  );
  connections.api.close();
  connections.endpoint.close();
} finally {
  await Promise.all([publisher.close(), admin.disconnect()]);
  await system.stop();
}
