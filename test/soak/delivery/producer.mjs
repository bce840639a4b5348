import { setTimeout as sleep } from 'node:timers/promises';
import { ksuid } from '../../../dist/libs/contracts/src/index.js';
import { eventRecord } from '../../../dist/libs/events/src/index.js';

const TICK_MS = 20;

/** Emits at a steady rate, one batch after the other; repeats a batch until it is acknowledged, like an outbox. */
export class Producer {
  acknowledged = 0;
  stopped = false;
  /** The number of acknowledged events of each emitter. */
  /** @type {Map<string, number>} */
  emitted = new Map();
  /** Events that may be in the topic twice. */
  /** @type {Set<string>} */
  resent = new Set();

  /**
   * @param {import('../../../dist/libs/messaging/src/index.js').Publisher} publisher
   * @param {string[]} emitters
   * @param {number} perSecond
   * @param {() => number} random
   */
  constructor(publisher, emitters, perSecond, random) {
    this.publisher = publisher;
    this.emitters = emitters;
    this.perSecond = perSecond;
    this.random = random;
  }

  stop() {
    this.stopped = true;
  }

  async run() {
    for (let due = performance.now(), owed = 0; !this.stopped;) {
      due += TICK_MS;
      const wait = due - performance.now();
      if (wait > 0) await sleep(wait);
      // after an outage of the broker, it does not catch up on events that it could not send
      else due = performance.now();
      owed += (this.perSecond * TICK_MS) / 1000;
      const events = Array.from({ length: Math.floor(owed) }, () => this.emit());
      owed -= events.length;
      await this.send(events);
      this.acknowledged += events.length;
    }
  }

  /** @param {{ name: string, record: object }[]} events */
  async send(events) {
    for (;;) {
      try {
        return await this.publisher.send(/** @type {any} */ (events.map(({ record }) => record)));
      } catch {
        for (const { name } of events) this.resent.add(name);
        await sleep(200);
      }
    }
  }

  emit() {
    const emitter = this.emitters[Math.floor(this.random() * this.emitters.length)] ?? '';
    const n = (this.emitted.get(emitter) ?? 0) + 1;
    this.emitted.set(emitter, n);
    const json = Buffer.from(JSON.stringify({ emitter, n, note: 'x'.repeat(200) }));
    return {
      name: `${emitter} ${n}`,
      record: { topic: 'events', ...eventRecord(/** @type {any} */ ({ emitterId: emitter, stream: '', emitId: ksuid(), json })) },
    };
  }
}
