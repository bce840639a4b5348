import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';

/**
 * @typedef {object} Expected
 * @property {Map<string, number>} emitted how many events of each emitter were acknowledged
 * @property {Map<string, string[]>} listeners the webhooks of each emitter
 * @property {Set<string>} resent events that may be in the topic twice: `<emitter> <n>`
 * @property {Set<string>} failed first attempts that failed: `<webhook> <emitter> <n>`; such an event may arrive behind later ones
 * @property {{ from: number, to: number }[]} interruptions from a kill until the recovery, and reassignments of partitions
 */

/** How long before an interruption a delivery may be that is repeated after it. While Kafka is down, nothing is committed. */
const WINDOW_MS = 5000;

/**
 * Compares the deliveries with the expected ones.
 * @param {string} file
 * @param {Expected} expected
 */
export async function compareWithArrivals(file, { emitted, listeners, resent, failed, interruptions }) {
  /** @type {Map<string, { accepted: number, id: string, times: number[] }>} */
  const deliveries = new Map();
  /** @type {Map<string, number>} */
  const newest = new Map();
  const found = {
    lost: 0,
    repeated: 0,
    repeated_by_producer: 0,
    beyond_window: 0,
    longest_window_ms: 0,
    disordered: 0,
    changed_ids: 0,
    arrivals: 0,
  };
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const [webhook, emitter, n, id, accepted, at] = line.split(' ');
    const key = `${webhook} ${emitter} ${n}`;
    found.arrivals += 1;
    let delivery = deliveries.get(key);
    if (!delivery) {
      deliveries.set(key, (delivery = { accepted: 0, id: id ?? '', times: [] }));
      const way = `${webhook} ${emitter}`;
      const last = newest.get(way) ?? 0;
      if (Number(n) < last && !failed.has(key)) found.disordered += 1;
      newest.set(way, Math.max(last, Number(n)));
    }
    if (delivery.id !== id) found.changed_ids += 1;
    if (accepted === '1') {
      delivery.accepted += 1;
      delivery.times.push(Number(at));
    }
  }
  for (const [emitter, count] of emitted) {
    for (const webhook of listeners.get(emitter) ?? []) {
      for (let n = 1; n <= count; n++) {
        const delivery = deliveries.get(`${webhook} ${emitter} ${n}`);
        if (!delivery?.accepted) found.lost += 1;
        else if (delivery.accepted > 1) judgeRepeat(`${webhook} ${emitter} ${n}`, delivery.times, resent.has(`${emitter} ${n}`));
      }
    }
  }
  return { ...found, deliveries: deliveries.size };

  /** @param {string} key @param {number[]} times @param {boolean} sentTwice */
  function judgeRepeat(key, times, sentTwice) {
    if (sentTwice) {
      found.repeated_by_producer += times.length - 1;
      return;
    }
    found.repeated += times.length - 1;
    for (const [index, time] of times.slice(0, -1).entries()) {
      const next = times[index + 1] ?? Infinity;
      const interruption = interruptions.find(({ from, to }) => to >= time - 100 && from <= next)?.from ?? Infinity;
      const window = Math.max(0, interruption - time);
      if (window > WINDOW_MS) {
        found.beyond_window += 1;
        const before = interruptions.findLast(({ from }) => from < time)?.from ?? 0;
        console.log(`${key}: again ${next - time} ms later; ${window} ms before an interruption, ${time - before} ms after one`);
      } else found.longest_window_ms = Math.max(found.longest_window_ms, window);
    }
  }
}
