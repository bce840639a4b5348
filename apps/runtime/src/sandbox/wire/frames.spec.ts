import { cpuSeconds } from '#testing';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { encodeFrame, FrameReader, FrameTooLarge } from './frames.js';

describe('frames', () => {
  it('come out as they went in, however the stream is cut', () => {
    fc.assert(
      fc.property(
        fc.array(fc.jsonValue(), { maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 200 }),
        (messages, cuts) => {
          const bytes = Buffer.concat(messages.map((message) => encodeFrame(message)));
          const reader = new FrameReader(1 << 20);
          const seen: unknown[] = [];
          for (let at = 0, i = 0; at < bytes.length; i++) {
            const size = cuts[i % cuts.length]!;
            for (const frame of reader.read(bytes.subarray(at, at + size))) seen.push(JSON.parse(frame.toString()));
            at += size;
          }
          expect(seen).toEqual(messages.map((message) => JSON.parse(JSON.stringify(message)) as unknown));
        },
      ),
    );
  });

  it('over the limit are refused at their head, before anything is kept', () => {
    const reader = new FrameReader(1000);
    expect(() => [...reader.read(Buffer.from([0, 0, 4, 0]))]).toThrow(FrameTooLarge);
  });

  it('frames that come a byte at a time cost no more than their length', async () => {
    const bytes = encodeFrame('x'.repeat(300_000));
    const reader = new FrameReader(1 << 20);
    let frames = 0;
    const readAll = () => {
      for (let at = 0; at < bytes.length; at++) frames += [...reader.read(bytes.subarray(at, at + 1))].length;
    };
    // Copying what has come with each byte would take half a minute.
    expect(await cpuSeconds(readAll)).toBeLessThan(5);
    expect(frames).toBe(1);
  });
});
