// npm run bench:neighbours — what one account notices while another one does its worst: the p99 of an endpoint's response, of a queued run and of a delivery to
// a webhook, each as a ratio to the p99 alone. Ends with one JSON line.
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { apiClient, startOwnSystem } from '../scripts/temporary/own-system.mjs';
import { atRate, median, quantiles } from './lib/quantiles.mjs';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 10);
/** Sources of the bad account that do nothing but exist, with a timer each. */
const CROWD = Number(process.env.BENCH_SOURCES ?? 200);
const PER_SECOND = { endpoint: 10, run: 10, delivery: 30 };
/** Time for the system to recover from the bad account. */
const SETTLE_MS = 5000;
const ARRIVES_WITHIN_MS = 30_000;
/** Events that the bad account publishes, and the webhooks that get each; none of them responds. */
const ANNOUNCED = { events: 100, everyMs: 300, webhooks: 200 };
/** In event ids, the partition is the remainder. */
const PARTITIONS = 4096;

const RESPONDS = `export default { name: 'Responds', props: { http: { type: '$.interface.http', customResponse: true } },
  run() { this.http.respond({ status: 200, body: 'ok' }) } }`;
const EMITS = `export default { name: 'Emits', run(event) { this.$emit(event) } }`;

/** @type {Record<string, string>} */
const BAD = {
  'never ends': `export default { name: 'Endless', props: { timer: { type: '$.interface.timer', default: { intervalSeconds: 1 } } }, run: () => new Promise(() => {}) }`,
  spins: `export default { name: 'Spins', props: { timer: { type: '$.interface.timer', default: { intervalSeconds: 1 } } }, run() { for (;;); } }`,
  crashes: `export default { name: 'Crashes', props: { timer: { type: '$.interface.timer', default: { intervalSeconds: 1 } } }, run() { const all = []; for (;;) all.push(new Array(1e6).fill(1)) } }`,
  loops: `export default { name: 'Loops', run() { for (let n = 0; n < 20; n++) this.$emit(n) } }`,
  flooded: `export default { name: 'Flooded', props: { http: '$.interface.http' }, async run() { await new Promise((done) => setTimeout(done, 500)) } }`,
};
const TICKS = `export default { name: 'Ticks', props: { timer: { type: '$.interface.timer', default: { intervalSeconds: 5 } } }, run() { this.$emit(1) } }`;

const system = await startOwnSystem();
const good = apiClient(system);
const badKey = await system.newAccount('bad@example.com');
const bad = apiClient({ apiUrl: system.apiUrl, apiKey: badKey });

/** @type {Map<number, () => void>} */
const waiting = new Map();
const receiver = createServer((request, response) => {
  let text = '';
  request.setEncoding('utf8');
  request.on('data', (part) => (text += part));
  request.on('end', () => {
    // the bad account's webhooks: no response at all
    if (request.url === '/hangs') return;
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
      if ((await response.text()) !== 'ok') throw new Error(`the endpoint returned ${response.status}`);
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

  const [worst, announcements] = [await prepareWorst(), await prepareAnnouncements(published.id)];
  await measure();
  const measureBeside = async (/** @type {{ begin(): Promise<unknown>, end(): Promise<unknown> }} */ disturbance) => {
    await disturbance.begin();
    // the good account does not pause: what it notices of the beginning is not counted
    await measure();
    const beside = await measure();
    await disturbance.end();
    await sleep(SETTLE_MS);
    return beside;
  };
  /** @type {{ alone: Record<string, number>, beside: Record<string, number>, announced: Record<string, number> }[]} */
  const rounds = [];
  // in turns, so that other load on the machine affects all
  for (let round = 0; round < ROUNDS; round++) {
    const figures = { alone: await measure(), beside: await measureBeside(worst), announced: await measureBeside(announcements) };
    rounds.push(figures);
    console.error(`round ${round + 1}:`, figures);
  }
  const figures = Object.fromEntries(
    Object.keys(PER_SECOND).map((kind) => [
      kind,
      {
        alone_p99_ms: median(rounds.map(({ alone }) => alone[kind] ?? NaN)),
        beside_p99_ms: median(rounds.map(({ beside }) => beside[kind] ?? NaN)),
        ratio: median(rounds.map(({ alone, beside }) => (beside[kind] ?? NaN) / (alone[kind] ?? NaN))),
        announced_p99_ms: median(rounds.map(({ announced }) => announced[kind] ?? NaN)),
        announced_ratio: median(rounds.map(({ alone, announced }) => (announced[kind] ?? NaN) / (alone[kind] ?? NaN))),
      },
    ]),
  );
  // what had not arrived within half a minute may still come
  for (let tries = 0; tries < 60 && waiting.size > 0; tries++) await sleep(500);
  console.log(
    JSON.stringify({ bench: 'neighbours', rounds: ROUNDS, seconds: SECONDS, sources: CROWD, sent: made, lost: waiting.size, figures }),
  );
} finally {
  receiver.closeAllConnections();
  receiver.close();
  await system.stop();
}

/** The sources and webhooks of the bad account, inactive until `begin`. */
async function prepareWorst() {
  /** @type {any[]} */
  const sources = [];
  for (const code of Object.values(BAD)) sources.push(await bad('POST', '/sources', { component_code: code }));
  const { component_id } = await bad('POST', '/sources', { component_code: TICKS });
  for (let n = 0; n < CROWD; n++) sources.push(await bad('POST', '/sources', { component_id, name: `crowd ${n}` }));
  const hanging = await bad('POST', '/webhooks', { url: `${receiverUrl}/hangs` });
  const loops = sources.find(({ name_slug }) => name_slug === 'loops');
  const flooded = sources.find(({ name_slug }) => name_slug === 'flooded');
  await bad('POST', '/subscriptions', { emitter_id: loops.id, listener_id: loops.id });
  for (const { id } of sources.slice(0, 50)) await bad('POST', '/subscriptions', { emitter_id: id, listener_id: hanging.id });
  const setActive = async (/** @type {boolean} */ active) => {
    for (const { id } of sources) await bad('PATCH', `/sources/${id}`, { active });
  };
  await setActive(false);
  let flooding = Promise.resolve();
  let isOn = false;
  return {
    begin: async () => {
      await setActive(true);
      isOn = true;
      await bad('POST', `/sources/${loops.id}/run`, {});
      flooding = (async () => {
        while (isOn) {
          await Promise.all(
            Array.from({ length: 20 }, () => fetch(flooded.configured_props.http.endpoint_url).then((response) => response.text())),
          );
          await sleep(50);
        }
      })();
    },
    end: async () => {
      isOn = false;
      await flooding;
      await setActive(false);
    },
  };
}

/** @param {ReturnType<typeof apiClient>} client @param {string} source that has no events yet */
async function partitionOf(client, source) {
  await client('POST', `/sources/${source}/events`, { n: -1 });
  for (;;) {
    const [first] = await client('GET', `/sources/${source}/event_summaries`);
    if (first) return Number(first.id.split('-')[1]) % PARTITIONS;
    await sleep(50);
  }
}

/**
 * Events of the bad account with many failing webhooks, in the partition of a source of the good one.
 * @param {string} neighbour
 */
async function prepareAnnouncements(neighbour) {
  const partition = await partitionOf(good, neighbour);
  /** @type {string} */
  let source;
  do ({ id: source } = await bad('POST', '/sources', { key: 'manual' }));
  while ((await partitionOf(bad, source)) !== partition);
  for (let n = 0; n < ANNOUNCED.webhooks; n++) {
    const { id } = await bad('POST', '/webhooks', { url: 'http://127.0.0.1:1/' });
    await bad('POST', '/subscriptions', { emitter_id: source, listener_id: id });
  }
  const event = { specversion: '1.0', source: 'bench', type: 'default', data: {} };
  let announcing = Promise.resolve();
  let isOn = false;
  return {
    begin: async () => {
      isOn = true;
      announcing = (async () => {
        for (let batch = 0; isOn; batch++) {
          await fetch(`${system.apiUrl}/sources/${source}/events`, {
            method: 'POST',
            headers: { authorization: `Bearer ${badKey}`, 'content-type': 'application/cloudevents-batch+json' },
            body: JSON.stringify(Array.from({ length: ANNOUNCED.events }, (_, n) => ({ ...event, id: `${Date.now()} ${batch} ${n}` }))),
          });
          await sleep(ANNOUNCED.everyMs);
        }
      })();
    },
    end: async () => {
      isOn = false;
      await announcing;
      // the rest of its events
      await bad('DELETE', `/sources/${source}/events`);
    },
  };
}
