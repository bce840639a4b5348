import { base62 } from '../../dist/libs/contracts/src/index.js';
import { eventRecord } from '../../dist/libs/events/src/index.js';

/** @param {number} count */
export const emitterIds = (count) => Array.from({ length: count }, (_, index) => `dc_0Vg2mXq1${base62(BigInt(index * 7919), 10)}`);

const NOTE = 'x'.repeat(220);

/** Events of about 300 bytes from random emitters; their emit ids sort by time, like those of Sluice. */
export class Load {
  count = 0;

  /**
   * @param {string[]} emitters
   * @param {() => number} random
   */
  constructor(emitters, random) {
    this.emitters = emitters;
    this.random = random;
  }

  next() {
    const emitterId = this.emitters[Math.floor(this.random() * this.emitters.length)];
    const number = this.count++;
    const emitId = `2xK${(1e12 + number).toString(36).padStart(10, '0')}0123456789abcd`;
    const json = Buffer.from(`{"order":${number},"customer":"c${number % 977}","amount":12.5,"note":"${NOTE}"}`);
    return { emitterId, emitId, json };
  }

  record() {
    return { topic: 'events', ...eventRecord({ ...this.next(), stream: '', hops: 0 }) };
  }
}
