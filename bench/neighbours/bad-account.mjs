// A worker thread of bench/neighbours.mjs with all traffic of the bad account, so that the measuring thread has nothing else to do. Its messages are the
// name of a disturbance and whether it begins; it responds to each when that is done.
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { apiClient } from '../../scripts/temporary/own-system.mjs';
import { partitionOf } from './partition-of.mjs';

/** @type {{ apiUrl: string, apiKey: string, crowd: number, partition: number }} */
const { apiUrl, apiKey, crowd, partition } = workerData;
const api = apiClient({ apiUrl, apiKey });

/** Sources that are switched at a time. */
const AT_A_TIME = 16;
const FLOOD = { atATime: 20, everyMs: 50 };
/** Events that it publishes, and the webhooks that get each; none of them responds. */
const ANNOUNCED = { events: 100, everyMs: 300, webhooks: 200 };
const PAGES = { readers: 8, events: 100, eventBytes: 50_000 };
const CODE = { creators: 4, bytes: 1_000_000 };

const TIMER = `props: { timer: { type: '$.interface.timer', default: { intervalSeconds: 1 } } }`;
/** @type {Record<string, string>} */
const COMPONENTS = {
  'never ends': `export default { name: 'Endless', ${TIMER}, run: () => new Promise(() => {}) }`,
  spins: `export default { name: 'Spins', ${TIMER}, run() { for (;;); } }`,
  crashes: `export default { name: 'Crashes', ${TIMER}, run() { const all = []; for (;;) all.push(new Array(1e6).fill(1)) } }`,
  loops: `export default { name: 'Loops', run() { for (let n = 0; n < 20; n++) this.$emit(n) } }`,
  flooded: `export default { name: 'Flooded', props: { http: '$.interface.http' }, async run() { await new Promise((done) => setTimeout(done, 500)) } }`,
};
const TICKS = `export default { name: 'Ticks', props: { timer: { type: '$.interface.timer', default: { intervalSeconds: 5 } } }, run() { this.$emit(1) } }`;

/** @typedef {{ begin(): Promise<unknown>, end(): Promise<unknown> }} Disturbance */

/**
 * Functions that are called again and again while the disturbance is on.
 * @param {(() => Promise<unknown>)[]} loops
 * @returns {Disturbance}
 */
function repeating(loops) {
  let isOn = false;
  /** @type {Promise<unknown>} */
  let running = Promise.resolve();
  return {
    begin: async () => {
      isOn = true;
      running = Promise.all(
        loops.map(async (loop) => {
          while (isOn) await loop();
        }),
      );
    },
    end: async () => {
      isOn = false;
      await running;
    },
  };
}

/**
 * Its sources and webhooks do their worst: runs that do not end, compute, use up memory or multiply events, a flooded endpoint, and a webhook that does not
 * respond.
 * @returns {Promise<Disturbance>}
 */
async function prepareWorst() {
  const hanging = createServer(() => {});
  await new Promise((resolve) => hanging.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (hanging.address());
  /** @type {any[]} */
  const sources = [];
  for (const code of Object.values(COMPONENTS)) sources.push(await api('POST', '/sources', { component_code: code }));
  const { component_id } = await api('POST', '/sources', { component_code: TICKS });
  for (let n = 0; n < crowd; n++) sources.push(await api('POST', '/sources', { component_id, name: `crowd ${n}` }));
  const webhook = await api('POST', '/webhooks', { url: `http://127.0.0.1:${port}/` });
  const loops = sources.find(({ name_slug }) => name_slug === 'loops');
  const flooded = sources.find(({ name_slug }) => name_slug === 'flooded');
  await api('POST', '/subscriptions', { emitter_id: loops.id, listener_id: loops.id });
  for (const { id } of sources.slice(0, 50)) await api('POST', '/subscriptions', { emitter_id: id, listener_id: webhook.id });
  const setActive = async (/** @type {boolean} */ active) => {
    for (let n = 0; n < sources.length; n += AT_A_TIME)
      await Promise.all(sources.slice(n, n + AT_A_TIME).map(({ id }) => api('PATCH', `/sources/${id}`, { active })));
  };
  await setActive(false);
  const flood = repeating([
    async () => {
      const request = async () => (await fetch(flooded.configured_props.http.endpoint_url)).text();
      await Promise.all(Array.from({ length: FLOOD.atATime }, request));
      await sleep(FLOOD.everyMs);
    },
  ]);
  return {
    begin: async () => {
      await setActive(true);
      await api('POST', `/sources/${loops.id}/run`, {});
      await flood.begin();
    },
    end: async () => {
      await flood.end();
      await setActive(false);
    },
  };
}

/**
 * Events with many failing webhooks, in the partition of a source of the good account.
 * @returns {Promise<Disturbance>}
 */
async function prepareAnnounced() {
  /** @type {string} */
  let source;
  do ({ id: source } = await api('POST', '/sources', { key: 'manual' }));
  while ((await partitionOf(api, source)) !== partition);
  for (let n = 0; n < ANNOUNCED.webhooks; n++) {
    const { id } = await api('POST', '/webhooks', { url: 'http://127.0.0.1:1/' });
    await api('POST', '/subscriptions', { emitter_id: source, listener_id: id });
  }
  const event = { specversion: '1.0', source: 'bench', type: 'default', data: {} };
  let batch = 0;
  const announcing = repeating([
    async () => {
      const events = Array.from({ length: ANNOUNCED.events }, (_, n) => ({ ...event, id: `${Date.now()} ${batch++} ${n}` }));
      await fetch(`${apiUrl}/sources/${source}/events`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/cloudevents-batch+json' },
        body: JSON.stringify(events),
      });
      await sleep(ANNOUNCED.everyMs);
    },
  ]);
  return {
    begin: announcing.begin,
    end: async () => {
      await announcing.end();
      // the rest of its events
      await api('DELETE', `/sources/${source}/events`);
    },
  };
}

/**
 * Its clients read pages of large events. Refused requests are part of it: the account has used up its share.
 * @returns {Promise<Disturbance>}
 */
async function preparePages() {
  const { id } = await api('POST', '/sources', { key: 'manual' });
  const text = 'x'.repeat(PAGES.eventBytes);
  for (let n = 0; n < PAGES.events; n++) await api('POST', `/sources/${id}/events`, { n, text });
  const read = () => api('GET', `/sources/${id}/event_summaries?limit=${PAGES.events}`).catch(() => sleep(10));
  return repeating(Array.from({ length: PAGES.readers }, () => read));
}

/**
 * Its clients create sources with large components, and delete them.
 * @returns {Disturbance}
 */
function prepareCode() {
  let created = 0;
  const create = async () => {
    const code = `export default { name: 'Large ${created++}', run() {} } // ${'x'.repeat(CODE.bytes)}`;
    const source = await api('POST', '/sources', { component_code: code }).catch(() => sleep(10));
    if (source) await api('DELETE', `/sources/${source.id}`).catch(() => {});
  };
  return repeating(Array.from({ length: CODE.creators }, () => create));
}

/** @type {Record<string, Disturbance>} */
const disturbances = {
  beside: await prepareWorst(),
  announced: await prepareAnnounced(),
  pages: await preparePages(),
  code: prepareCode(),
};
parentPort?.on('message', async ({ name, begins }) => {
  await disturbances[name]?.[begins ? 'begin' : 'end']();
  parentPort?.postMessage('done');
});
parentPort?.postMessage('done');
