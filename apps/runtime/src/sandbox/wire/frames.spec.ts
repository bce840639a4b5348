import { cpuSeconds } from '#testing';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
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

  it('counts the bytes of a frame that has not arrived completely', () => {
    const bytes = encodeFrame('x'.repeat(1000));
    const reader = new FrameReader(1 << 20);
    const pending = [bytes.subarray(0, 3), bytes.subarray(3, 500), Buffer.concat([bytes.subarray(500), bytes.subarray(0, 2)])].map(
      (chunk) => {
        for (const _ of reader.read(chunk));
        return reader.pendingBytes;
      },
    );
    expect(pending).toEqual([3, 496, 2]);
  });

  it('a frame is not kept in memory by the beginning of the next one', async () => {
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    const frame = encodeFrame('x'.repeat(1 << 20));
    const bytes = Buffer.concat([frame, frame.subarray(0, 1)]);
    const chunkBytes = 1 << 16;
    const readers = Array.from({ length: 50 }, () => new FrameReader(1 << 21));
    const heldBytes = () => {
      gc();
      return process.memoryUsage().arrayBuffers;
    };
    const before = heldBytes();
    for (const reader of readers)
      for (let at = 0; at < bytes.length; at += chunkBytes) for (const _ of reader.read(Buffer.from(bytes.subarray(at, at + chunkBytes))));
    // V8 returns it in the background
    for (let turn = 0; turn < 200 && heldBytes() - before >= 10 << 20; turn++) await sleep(10);
    expect(heldBytes() - before).toBeLessThan(10 << 20);
    expect(readers).toHaveLength(50);
  });
});
