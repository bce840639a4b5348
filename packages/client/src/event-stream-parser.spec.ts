import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type Frame, framesOf } from './event-stream-parser.js';

const TEXT =
  ': hello\n\nid: 1-1\ndata: {"a":\ndata: "ü💧"}\n\nid: 1-2\r\ndata: 2\r\n\r\nid: 1-3\rdata: 3\r\r: still here\n\nevent: x\ndata\n\nid: 9-9\n\ndata: cut';
const FRAMES: Frame[] = [
  { comment: 'hello' },
  { id: '1-1', data: '{"a":\n"ü💧"}' },
  { id: '1-2', data: '2' },
  { id: '1-3', data: '3' },
  { comment: 'still here' },
  { id: undefined, data: '' },
];

async function parsed(chunks: Uint8Array[]): Promise<Frame[]> {
  const frames: Frame[] = [];
  for await (const frame of framesOf(ReadableStream.from<Uint8Array>(chunks))) frames.push(frame);
  return frames;
}

describe('framesOf', () => {
  it('returns events and comments, and drops an event that is cut off', async () => {
    expect(await parsed([new TextEncoder().encode(TEXT)])).toEqual(FRAMES);
  });

  it('does not depend on how the bytes are divided', async () => {
    const bytes = new TextEncoder().encode(TEXT);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length)), async (cuts) => {
        const ends = [0, ...cuts.sort((a, b) => a - b), bytes.length];
        const chunks = ends.slice(1).map((end, n) => bytes.slice(ends[n], end));
        expect(await parsed(chunks)).toEqual(FRAMES);
      }),
    );
  });

  it('joins an event of a megabyte that arrives in parts of 20 bytes', async () => {
    const data = 'x'.repeat(1_000_000);
    const bytes = new TextEncoder().encode(`data: ${data}\n\n`);
    const chunks = Array.from({ length: bytes.length / 20 }, (_, n) => bytes.subarray(n * 20, n * 20 + 20));
    expect(await parsed([...chunks, bytes.subarray(chunks.length * 20)])).toEqual([{ id: undefined, data }]);
  });
});
