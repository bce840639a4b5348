// Emits events in a separate process, controlled by its parent. {emitters, count, perSecond, topic}: without perSecond, as fast as Kafka accepts them.
import { ksuid } from '../../dist/libs/contracts/src/index.js';
import { eventRecord } from '../../dist/libs/events/src/index.js';
import { KafkaClient, KafkaConfig, Publisher } from '../../dist/libs/messaging/src/index.js';
import { createLog } from '../../dist/libs/observability/src/index.js';

const BATCH = 500;
const NOTE = 'x'.repeat(220);

const publisher = new Publisher(new KafkaClient(KafkaConfig.read({ KAFKA_BROKERS: process.argv[2] }), 'bench', createLog('bench', 'warn')));
await publisher.connect();

let key = 0;
/** @param {string} emitterId @param {string} topic */
function record(emitterId, topic) {
  key += 1;
  const at = performance.timeOrigin + performance.now();
  const json = Buffer.from(JSON.stringify({ key, at, note: NOTE }));
  return { topic, ...eventRecord({ emitterId: /** @type {any} */ (emitterId), stream: '', emitId: ksuid(), json }) };
}

/** @param {{ emitters: string[], count: number, perSecond?: number, topic?: string }} load */
async function generate({ emitters, count, perSecond, topic = 'events' }) {
  const started = performance.now();
  /** @type {Promise<void>[]} */
  const sends = [];
  for (let n = 0; n < count;) {
    const size = perSecond ? 1 : Math.min(BATCH, count - n);
    if (perSecond) {
      const wait = started + (n * 1000) / perSecond - performance.now();
      if (wait > 1) await new Promise((resolve) => setTimeout(resolve, wait));
    }
    const sent = publisher.send(Array.from({ length: size }, (_, i) => record(emitters[(n + i) % emitters.length] ?? '', topic)));
    n += size;
    if (perSecond) sends.push(sent);
    else await sent;
  }
  await Promise.all(sends);
}

process.on('message', (load) => {
  void generate(/** @type {any} */ (load)).then(() => process.send?.('done'));
});
process.on('disconnect', () => process.exit());
process.send?.('ready');
