import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createCounter } from './account.mjs';

const EVERY_MS = 300;
const ARRIVES_WITHIN_MS = 30_000;

/**
 * The observations of a victim. `slowestMs`: of a round
 * @typedef {{ rounds: number, slowestMs: number, failures: string[] }} Notes
 */

/**
 * An account that does nothing wrong, beside the hostile ones: in each round, it calls an endpoint to which a run responds, and queues a run that changes
 * `db` and emits an event.
 *
 * @param {import('./account.mjs').Account} account
 * @param {boolean} hasWebhook whether the instance reaches 127.0.0.1 of this machine, where a webhook then receives the events
 * @returns {Promise<{ stop(): Promise<Notes> }>}
 */
export async function keepVictim(account, hasWebhook) {
  const responds = await createCounter(account);
  const queued = await createCounter(account);
  const receiver = hasWebhook ? await receive(account, queued.id) : undefined;
  /** @type {Notes} */
  const notes = { rounds: 0, slowestMs: 0, failures: [] };
  let isOver = false;

  const play = async () => {
    const sent = ++notes.rounds;
    const problem = await responds.request();
    if (problem) notes.failures.push(`a request at its endpoint: ${problem}`);
    await account.must('POST', `/sources/${queued.id}/run`, { event: { sent } });
    const expected = JSON.stringify({ count: sent, sent });
    const hasArrived = async () => {
      const events = await account.must('GET', `/sources/${queued.id}/event_summaries?limit=10`);
      const isStored = events.some((/** @type {{ event: object }} */ { event }) => JSON.stringify(event) === expected);
      return isStored && (receiver === undefined || receiver.bodies.has(expected));
    };
    const until = Date.now() + ARRIVES_WITHIN_MS;
    for (let pauseMs = 50; !(await hasArrived()); pauseMs = Math.min(2 * pauseMs, 500)) {
      if (Date.now() > until) return notes.failures.push(`the event of run ${sent} did not arrive in time`);
      await sleep(pauseMs);
    }
  };
  const playing = (async () => {
    while (!isOver) {
      const begun = performance.now();
      await play().catch((error) => notes.failures.push(String(error)));
      notes.slowestMs = Math.max(notes.slowestMs, Math.round(performance.now() - begun));
      await sleep(EVERY_MS);
    }
  })();

  return {
    stop: async () => {
      isOver = true;
      await playing;
      receiver?.close();
      const strange = [...(receiver?.bodies ?? [])].find((body) => !/^{"count":\d+,"sent":\d+}$/.test(body));
      if (strange) notes.failures.push(`its webhook received an event that it has not emitted: ${strange.slice(0, 200)}`);
      return notes;
    },
  };
}

/**
 * A webhook for the events of a source.
 * @param {import('./account.mjs').Account} account
 * @param {string} source
 */
async function receive({ must }, source) {
  /** @type {Set<string>} */
  const bodies = new Set();
  const server = createServer(async (request, response) => {
    bodies.add(Buffer.concat(await request.toArray()).toString());
    response.end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  const webhook = await must('POST', '/webhooks', { url: `http://127.0.0.1:${port}` });
  await must('POST', '/subscriptions', { emitter_id: source, listener_id: webhook.id });
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { bodies, close };
}
