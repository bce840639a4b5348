import { setTimeout as sleep } from 'node:timers/promises';

/** In place of the number of an event that is never committed. */
export const ABORTED = 'aborted';
const PAUSE_MS = 300;
const MOST_EVENTS = 5;

/**
 * Emits the events of a line in transactions, one transaction after the other. Between them, others are aborted, or left open by a producer that ends; the
 * next producer with its transactional id aborts those. Transactions with an unknown outcome are repeated.
 *
 * @param {import('./load.mjs').Load} load @param {import('./load.mjs').Line} line
 */
export async function transact(load, line) {
  /** @type {import('kafkajs').Producer | undefined} */
  let producer;
  /** @type {number[]} */
  let uncommitted = [];
  while (!load.stopped || uncommitted.length > 0) {
    await sleep(PAUSE_MS * load.random());
    const chance = load.random();
    const end = chance < 0.6 || load.stopped ? 'commit' : chance < 0.85 ? 'abort' : 'leave';
    if (end === 'commit' && uncommitted.length === 0) uncommitted = numbers(line, 1 + Math.floor(load.random() * MOST_EVENTS));
    try {
      producer ??= await connect(load, line);
      const transaction = await producer.transaction();
      for (const n of end === 'commit' ? uncommitted : [ABORTED, ABORTED])
        await transaction.send({ topic: 'events', messages: [messageOf(line, n)] });
      if (end === 'leave') throw new Error('the producer ends');
      if (end === 'abort') {
        await transaction.abort();
        continue;
      }
      // from here on, it may be committed without an acknowledgement
      const sent = uncommitted;
      await transaction.commit().catch((error) => {
        for (const n of sent) line.resent.add(n);
        throw error;
      });
      for (const n of sent) {
        line.offsets[n] = -1;
        line.acknowledgedAt[n] = Date.now();
      }
      load.acknowledged += sent.length;
      uncommitted = [];
    } catch {
      await producer?.disconnect().catch(() => {});
      producer = undefined;
    }
  }
  await producer?.disconnect().catch(() => {});
}

/** @param {import('./load.mjs').Load} load @param {import('./load.mjs').Line} line */
async function connect(load, { name }) {
  const producer = load.system.kafka.producer({
    ...{ allowAutoTopicCreation: false, transactionalId: `soak-${name}`, idempotent: true, maxInFlightRequests: 1 },
  });
  await producer.connect();
  return producer;
}

/** The numbers of the next events. @param {import('./load.mjs').Line} line @param {number} count */
const numbers = (line, count) => Array.from({ length: count }, () => ++line.emitted);

/** @param {import('./load.mjs').Line} line @param {number | string} n */
const messageOf = (line, n) => ({
  ...{ key: line.emitter, partition: line.partition },
  ...(typeof n === 'number' && { headers: { ce_id: `${line.name}-${n}` } }),
  value: JSON.stringify({ line: line.name, n }),
});
