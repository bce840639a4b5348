import { describe, expect, it } from '@jest/globals';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { encodeFrame } from '../wire/frames.js';
import { type FrameCost, pieceMs, RunnerChannel } from './runner-channel.js';

const LIMITS = { frameBytes: 1 << 20, frameTokens: 1000 };

/** A channel on a socket of the test, with the cost of the frames that it has read. */
function open() {
  const socket = new EventEmitter();
  const costs: FrameCost[] = [];
  const failures: string[] = [];
  const lost: number[] = [];
  new RunnerChannel(socket as Socket, LIMITS).receive(
    (_message, cost) => costs.push(cost) > 0,
    ({ message }, ms) => {
      failures.push(message);
      lost.push(ms);
    },
  );
  const write = (bytes: Buffer, size: number): void => {
    for (let at = 0; at < bytes.length; at += size) socket.emit('data', bytes.subarray(at, at + size));
  };
  return { costs, failures, lost, write };
}

const frame = encodeFrame({ t: 'pong', n: 12 });

describe('the cost of a frame', () => {
  it('includes the pieces in which it arrived, and time for each', () => {
    const { costs, write } = open();
    write(frame, frame.length);
    write(frame, 1);
    write(frame, 1);
    const [whole, ...others] = costs;
    expect(whole!.pieces).toBe(1);
    for (const { pieces, ms } of others) {
      expect(pieces).toBe(frame.length);
      expect(ms).toBeGreaterThanOrEqual(frame.length * pieceMs);
    }
  });

  it('includes the pieces once if several frames arrive together', () => {
    const { costs, write } = open();
    write(Buffer.concat([frame, frame, frame]), 3 * frame.length);
    expect(costs.map(({ pieces }) => pieces)).toEqual([1, 0, 0]);
    expect(costs.every(({ ms }) => ms > 0)).toBe(true);
  });
});

it('a frame that is refused costs time, too', () => {
  const { failures, lost, write } = open();
  const bytes = encodeFrame({ t: 'unknown' });
  write(bytes, 1);
  expect(failures).toEqual(['an unknown message']);
  expect(lost[0]).toBeGreaterThanOrEqual(bytes.length * pieceMs);
});

it('a frame that arrives in thousands of pieces is refused before it is complete', () => {
  const { costs, failures, write } = open();
  const large = encodeFrame({ t: 'pong', n: 1, more: 'x'.repeat(5000) });
  write(large, 1);
  expect([costs, failures]).toEqual([[], ['a frame in too many pieces']]);
});
