import fs from 'node:fs';
import { Socket } from 'node:net';
import { encodeFrame, FrameReader } from '../wire/frames.js';
import type { FromGuest, ToGuest } from '../wire/messages.js';

// taken before any component could replace it
const { writeSync } = fs;

const frameDescriptor = 3;
// The kernel takes a smaller frame at once
const largeFrame = 64 * 1024;
const waitMs = 0.05;
const mostWaits = 1000;
const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** The guest's end of the frames. It is created before any component runs, so changes that a component makes to `net` or `Buffer` hardly affect it. */
export class Channel {
  private readonly socket = new Socket({ fd: frameDescriptor, readable: true, writable: true });

  listen(receive: (message: ToGuest) => void): void {
    const reader = new FrameReader(2 ** 31);
    this.socket.on('data', (chunk: Buffer) => {
      for (const body of reader.read(chunk)) receive(JSON.parse(body.toString()) as ToGuest);
    });
    // The parent has ended and sends no more requests
    const { reallyExit } = process as unknown as { reallyExit(code: number): never };
    const end = (): never => reallyExit.call(process, 0);
    this.socket.on('close', end);
    this.socket.on('error', end);
  }

  /** The message leaves the process even if code then loops forever. */
  send(message: FromGuest): void {
    const frame = encodeFrame(message);
    const written = frame.length < largeFrame || this.socket.writableLength > 0 ? 0 : writeNow(frame);
    if (written < frame.length) this.socket.write(frame.subarray(written));
  }
}

/** Waits for the parent to read, but not long. Node would write the rest of a large frame in a later turn. @returns the number of bytes written */
function writeNow(frame: Buffer): number {
  let written = 0;
  for (let waits = 0; written < frame.length && waits < mostWaits;) {
    try {
      written += writeSync(frameDescriptor, frame, written);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') break;
      Atomics.wait(sleeper, 0, 0, waitMs);
      waits++;
    }
  }
  return written;
}
