import { Socket } from 'node:net';
import { encodeFrame, FrameReader } from '../wire/frames.js';
import type { FromGuest, ToGuest } from '../wire/messages.js';

const frameDescriptor = 3;

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

  send(message: FromGuest): void {
    this.socket.write(encodeFrame(message));
  }
}
