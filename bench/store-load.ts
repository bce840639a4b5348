import { base62, type EmitterId, eventRecord, type EventToProduce, type Stream } from '#contracts';

/** A number from 0 to 1, the same row of them for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const emitterIds = (count: number): EmitterId[] =>
  Array.from({ length: count }, (_, index): EmitterId => `dc_0Vg2mXq1${base62(BigInt(index * 7919), 10)}`);

const NOTE = 'x'.repeat(220);

/** Events of about 300 bytes, whose emit ids sort by time as ours do. */
export class Load {
  private count = 0;

  constructor(
    private readonly emitters: EmitterId[],
    private readonly random: () => number,
  ) {}

  next(stream: Stream = ''): EventToProduce & { emitterId: EmitterId; emitId: string } {
    const emitterId = this.emitters[Math.floor(this.random() * this.emitters.length)] as EmitterId;
    const number = this.count++;
    const emitId = `2xK${(1e12 + number).toString(36).padStart(10, '0')}0123456789abcd`;
    const json = Buffer.from(`{"order":${number},"customer":"c${number % 977}","amount":12.5,"note":"${NOTE}"}`);
    return { ...eventRecord({ emitterId, stream, emitId, json }), emitterId, emitId };
  }
}
