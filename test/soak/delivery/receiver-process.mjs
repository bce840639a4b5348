// receiver-process.mjs <port> <file>: receives webhooks and writes each to the file before it responds, so that no accepted delivery is
// lost when it is killed.
//   /ok/<webhook> returns 200; /flap/<webhook> fails for 5 s of each 20; /slow/<webhook> sometimes takes 1.5 s
import { openSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';

const [port, file] = process.argv.slice(2);
const arrivals = openSync(file ?? '', 'a');
const SLOW_SHARE = 0.002;
const flapping = () => Date.now() % 20_000 < 5000;

createServer((request, response) => {
  /** @type {Buffer[]} */
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const [, kind, webhook] = (request.url ?? '').split('/');
    const { emitter, n } = JSON.parse(Buffer.concat(chunks).toString());
    const accepted = kind !== 'flap' || !flapping();
    writeSync(arrivals, `${webhook} ${emitter} ${n} ${request.headers['webhook-id']} ${accepted ? 1 : 0} ${Date.now()}\n`);
    const respond = () => response.writeHead(accepted ? 200 : 500).end();
    if (kind === 'slow' && Math.random() < SLOW_SHARE) setTimeout(respond, 1500);
    else respond();
  });
}).listen(Number(port), '127.0.0.1');
process.on('SIGTERM', () => process.exit());
