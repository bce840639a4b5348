// The clients of bench/live.mjs, in a separate process: it reports when all are connected, and finally the events that they received.
import { request } from 'node:http';

const DUE = /"due":([\d.]+)/g;
const PATIENCE_MS = 15_000;
/** @type {number[]} */
let latencies = [];

process.on('message', async (/** @type {any} */ message) => {
  if (message.url) await connect(message);
  if (message.reset) await until(Infinity, 500);
  if (message.reset) latencies = [];
  if (message.expect) await until(message.expect, PATIENCE_MS);
  // a sample is enough for the quantiles, and small enough for a message
  const every = Math.max(1, Math.floor(latencies.length / 200_000));
  process.send?.({ count: latencies.length, latencies: message.expect ? latencies.filter((_, index) => index % every === 0) : [] });
});

/** @param {{ url: string, apiKey: string, clients: number }} message */
async function connect({ url, apiKey, clients }) {
  for (let n = 0; n < clients; n += 50) await Promise.all(Array.from({ length: Math.min(50, clients - n) }, () => one(url, apiKey)));
}

/**
 * @param {string} url
 * @param {string} apiKey
 * @returns {Promise<void>} when the headers have arrived
 */
function one(url, apiKey) {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { agent: false, headers: { authorization: `Bearer ${apiKey}` } }, (response) => {
      if (response.statusCode !== 200) return reject(new Error(`no stream: ${response.statusCode}`));
      let rest = '';
      response.setEncoding('latin1').on('data', (part) => {
        const now = Date.now();
        // an event may be in two parts
        const text = rest + part;
        const end = text.lastIndexOf('\n\n') + 1;
        rest = text.slice(end);
        for (const [, due] of text.slice(0, end).matchAll(DUE)) latencies.push(now - Number(due));
      });
      resolve();
    });
    outgoing.on('error', reject).end();
  });
}

/** @param {number} count @param {number} withinMs */
async function until(count, withinMs) {
  for (const end = Date.now() + withinMs; latencies.length < count && Date.now() < end;)
    await new Promise((resolve) => setTimeout(resolve, 20));
}
