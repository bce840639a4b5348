// npm run bench:neighbours — what one account notices while another one does its worst: the p99 of an endpoint's response, of a queued run and of a delivery to
// a webhook, each as a ratio to the p99 alone. Ends with one JSON line.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { apiClient, startOwnSystem } from '../scripts/temporary/own-system.mjs';
import { atRate, median, quantiles } from './lib/quantiles.mjs';
import { partitionOf } from './neighbours/partition-of.mjs';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 10);
/** Sources of the bad account that do nothing but exist, with a timer each. */
const CROWD = Number(process.env.BENCH_SOURCES ?? 1000);
/** Of the bad account, as bench/neighbours/bad-account.mjs names them. */
const DISTURBANCES = (process.env.BENCH_DISTURBANCES ?? 'beside,announced,pages,code').split(',');
const PER_SECOND = { endpoint: 10, run: 10, delivery: 30 };
/** Time for the system to recover from the bad account. */
const SETTLE_MS = 5000;
const ARRIVES_WITHIN_MS = 30_000;

const RESPONDS = `export default { name: 'Responds', props: { http: { type: '$.interface.http', customResponse: true } },
  run() { this.http.respond({ status: 200, body: 'ok' }) } }`;
const EMITS = `export default { name: 'Emits', run(event) { this.$emit(event) } }`;

const system = await startOwnSystem();
const good = apiClient(system);

/** @type {Map<number, () => void>} */
const waiting = new Map();
const receiver = createServer((request, response) => {
  let text = '';
  request.setEncoding('utf8');
  request.on('data', (part) => (text += part));
  request.on('end', () => {
    response.end();
    const { n } = JSON.parse(text);
    waiting.get(n)?.();
    waiting.delete(n);
  });
});
await new Promise((resolve) => receiver.listen(0, '127.0.0.1', () => resolve(undefined)));
const receiverUrl = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (receiver.address()).port}`;

try {
  const [responds, runs, published] = [
    await good('POST', '/sources', { component_code: RESPONDS }),
    await good('POST', '/sources', { component_code: EMITS }),
    await good('POST', '/sources', { key: 'manual' }),
  ];
  const webhook = await good('POST', '/webhooks', { url: `${receiverUrl}/good` });
  for (const { id } of [runs, published]) await good('POST', '/subscriptions', { emitter_id: id, listener_id: webhook.id });

  let made = 0;
  /** Resolves when the receiver has the event. @param {(event: { n: number }) => Promise<unknown>} send */
  const untilArrived = async (send) => {
    const n = made++;
    const arrived = new Promise((resolve) => waiting.set(n, () => resolve(undefined)));
    await send({ n });
    await Promise.race([arrived, sleep(ARRIVES_WITHIN_MS, undefined, { ref: false })]);
  };
  /** @type {Record<keyof typeof PER_SECOND, () => Promise<unknown>>} */
  const calls = {
    endpoint: async () => {
      const response = await fetch(responds.configured_props.http.endpoint_url);
      const text = await response.text();
      if (text !== 'ok') throw new Error(`the endpoint returned ${response.status} ${text}`);
    },
    run: () => untilArrived((event) => good('POST', `/sources/${runs.id}/run`, { event })),
    delivery: () => untilArrived((event) => good('POST', `/sources/${published.id}/events`, event)),
  };
  const measure = async () => {
    const measured = await Promise.all(
      Object.entries(PER_SECOND).map(async ([kind, perSecond]) => {
        const call = calls[/** @type {keyof typeof PER_SECOND} */ (kind)];
        return [kind, quantiles(await atRate({ perSecond, seconds: SECONDS }, call)).p99];
      }),
    );
    return /** @type {Record<string, number>} */ (Object.fromEntries(measured));
  };

  const badAccount = new Worker(new URL('neighbours/bad-account.mjs', import.meta.url), {
    workerData: {
      apiUrl: system.apiUrl,
      apiKey: await system.newAccount('bad@example.com'),
      crowd: CROWD,
      partition: await partitionOf(good, published.id),
    },
  });
  await once(badAccount, 'message');
  const disturb = async (/** @type {string} */ name, /** @type {boolean} */ begins) => {
    badAccount.postMessage({ name, begins });
    await once(badAccount, 'message');
  };
  // the first requests of a process are slow
  for (let n = 0; n < 3; n++) await measure();
  const measureBeside = async (/** @type {string} */ disturbance) => {
    await disturb(disturbance, true);
    // the good account does not pause: what it notices of the beginning is not counted
    await measure();
    const beside = await measure();
    await disturb(disturbance, false);
    await sleep(SETTLE_MS);
    return beside;
  };
  /** By round and disturbance; `alone`: none. @type {Record<string, Record<string, number>>[]} */
  const rounds = [];
  // in turns, so that other load on the machine affects all
  for (let round = 0; round < ROUNDS; round++) {
    const figures = { alone: await measure() };
    for (const name of DISTURBANCES) Object.assign(figures, { [name]: await measureBeside(name) });
    rounds.push(figures);
    console.error(`round ${round + 1}:`, figures);
  }
  const p99 = (/** @type {Record<string, Record<string, number>>} */ round, /** @type {string} */ name, /** @type {string} */ kind) =>
    round[name]?.[kind] ?? NaN;
  const figures = Object.fromEntries(
    Object.keys(PER_SECOND).map((kind) => [
      kind,
      {
        alone_p99_ms: median(rounds.map((round) => p99(round, 'alone', kind))),
        ...Object.fromEntries(
          DISTURBANCES.map((name) => [
            name,
            {
              p99_ms: median(rounds.map((round) => p99(round, name, kind))),
              ratio: median(rounds.map((round) => p99(round, name, kind) / p99(round, 'alone', kind))),
            },
          ]),
        ),
      },
    ]),
  );
  // what had not arrived within half a minute may still come
  for (let tries = 0; tries < 60 && waiting.size > 0; tries++) await sleep(500);
  await badAccount.terminate();
  console.log(
    JSON.stringify({ bench: 'neighbours', rounds: ROUNDS, seconds: SECONDS, sources: CROWD, sent: made, lost: waiting.size, figures }),
  );
} finally {
  receiver.closeAllConnections();
  receiver.close();
  await system.stop();
}
