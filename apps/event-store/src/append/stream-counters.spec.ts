import { describe, expect, it } from '@jest/globals';
import type { EmitterId } from '#contracts';
import { seededRandom } from '#testing';
import { StreamCounter } from './stream-counters.js';

const streamsOf = (emitterId: EmitterId, from: number, count: number) =>
  Array.from({ length: count }, (_, n) => ({ emitterId, stream: `s${from + n}` }));

describe('the streams of an emitter are counted', () => {
  it('about once for 500 new ones, also if the service starts again before it has seen as many', () => {
    const random = seededRandom(1);
    let counted = 0;
    for (let day = 0; day < 100; day++) counted += new StreamCounter(random).due(streamsOf('dc_1', day * 400, 400)).length;
    expect(counted).toBeGreaterThan(60);
    expect(counted).toBeLessThan(100);
  });

  it('about once for 500 new ones, also if very many emitters name some', () => {
    const counter = new StreamCounter(seededRandom(1));
    let counted = 0;
    for (let round = 0; round < 10; round++)
      for (let n = 0; n < 200; n++) counted += counter.due(streamsOf(`dc_${n}`, round * 100, 100)).length;
    expect(counted).toBeGreaterThan(300);
    expect(counted).toBeLessThan(500);
  });

  it('never for the default stream, reserved ones, and those that it has seen', () => {
    const counter = new StreamCounter(() => 0);
    const seen = ['', '$errors', '$logs', 'orders'].map((stream) => ({ emitterId: 'dc_1' as const, stream }));
    for (let n = 0; n < 1000; n++) expect(counter.due(seen)).toEqual([]);
  });

  it('again for streams that cannot all be stored, but not for those of others', () => {
    const counter = new StreamCounter(() => 0);
    const [crowded, other] = [streamsOf('dc_1', 0, 6000), streamsOf('dc_2', 0, 1000)];
    counter.due([...crowded, ...other]);
    for (let round = 0; round < 3; round++) expect(crowded.flatMap((event) => counter.due([event]))).toHaveLength(12);
    expect(counter.due(other)).toEqual([]);
  });
});
