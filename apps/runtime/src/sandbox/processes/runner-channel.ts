import type { Socket } from 'node:net';
import { encodeFrame, FrameReader, FrameTooLarge } from '../wire/frames.js';
import { ProtocolBroken, readGuestMessage } from '../wire/guest-message.js';
import type { FromGuest, ToGuest } from '../wire/messages.js';

/** Our end of the frames of one process. */
export class RunnerChannel {
  constructor(private readonly socket: Socket) {
    socket.on('error', () => {});
  }

  send(message: ToGuest): void {
    this.socket.write(encodeFrame(message));
  }

  /**
   * @param take one message and its size; false: no more of them
   * @param fail what was sent is not to be taken, or `take` threw
   */
  receive(frameBytes: number, take: (message: FromGuest, bytes: number) => boolean, fail: (error: Error) => void): void {
    const reader = new FrameReader(frameBytes);
    let open = true;
    this.socket.on('data', (chunk: Buffer) => {
      try {
        if (open) for (const frame of reader.read(chunk)) if (!(open &&= take(readGuestMessage(frame), frame.length))) return;
      } catch (error) {
        open = false;
        fail(error instanceof FrameTooLarge ? new ProtocolBroken(error.message) : (error as Error));
      }
    });
  }
}
