// Responds to POSTs as fast as possible and records when each event arrived where, in a separate process controlled by its parent.
//   /ok/<webhook>  200   /fail/<webhook>  500   /hang/<webhook>  never
import { createServer } from 'node:net';

const OK = Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
const FAIL = Buffer.from('HTTP/1.1 500 No\r\ncontent-length: 2\r\n\r\nno');
const END_OF_HEAD = Buffer.from('\r\n\r\n');

/** The arrivals since the last reset. */
let arrivals = emptyArrivals();

function emptyArrivals() {
  return { /** @type {Set<string>} */ seen: new Set(), count: 0, first: 0, last: 0, failed: 0, /** @type {number[]} */ latencies: [] };
}

const now = () => performance.timeOrigin + performance.now();

/** @param {string} path @param {Buffer} body */
function arrive(path, body) {
  const { key, at } = JSON.parse(body.toString('latin1'));
  const time = now();
  arrivals.count += 1;
  arrivals.first ||= time;
  const name = `${path} ${key}`;
  if (arrivals.seen.has(name)) return;
  arrivals.seen.add(name);
  arrivals.last = time;
  arrivals.latencies.push(time - at);
}

const server = createServer((socket) => {
  let pending = Buffer.alloc(0);
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk) => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    for (;;) {
      const end = pending.indexOf(END_OF_HEAD);
      if (end < 0) return;
      const head = pending.toString('latin1', 0, end);
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
      const total = end + 4 + length;
      if (pending.length < total) return;
      const body = pending.subarray(end + 4, total);
      pending = pending.subarray(total);
      const path = head.slice(5, head.indexOf(' ', 5));
      if (path.startsWith('/ok/')) {
        arrive(path, body);
        socket.write(OK);
      } else {
        arrivals.failed += 1;
        if (path.startsWith('/fail/')) socket.write(FAIL);
      }
    }
  });
});

server.listen(0, '127.0.0.1', () => process.send?.({ port: /** @type {import('node:net').AddressInfo} */ (server.address()).port }));
process.on('message', (message) => {
  if (message === 'reset') arrivals = emptyArrivals();
  const { seen, count, first, last, failed, latencies } = arrivals;
  process.send?.({ unique: seen.size, count, first, last, failed, ...(message === 'latencies' ? { latencies } : {}) });
});
process.on('disconnect', () => process.exit());
