import type { Socket } from 'node:net';
import { encodeFrame, FrameReader, FrameTooLarge } from '../wire/frames.js';
import { ProtocolBroken, readGuestMessage, tokensOf } from '../wire/guest-message.js';
import type { FromGuest, ToGuest } from '../wire/messages.js';

/** The cost of reading a frame. */
export interface FrameCost {
  bytes: number;
  /** The number of tokens in its JSON */
  tokens: number;
}

/** The parent's end of the frames of one process. */
export class RunnerChannel {
  constructor(private readonly socket: Socket) {
    socket.on('error', () => {});
  }

  send(message: ToGuest): void {
    this.socket.write(encodeFrame(message));
  }

  /**
   * @param take receives one message and its cost, and returns false to stop reading
   * @param fail called if a frame is invalid or `take` threw
   */
  receive(
    { frameBytes, frameTokens }: { frameBytes: number; frameTokens: number },
    take: (message: FromGuest, cost: FrameCost) => boolean,
    fail: (error: Error) => void,
  ): void {
    const reader = new FrameReader(frameBytes);
    let open = true;
    this.socket.on('data', (chunk: Buffer) => {
      try {
        if (!open) return;
        for (const frame of reader.read(chunk)) {
          const cost = { bytes: frame.length, tokens: tokensOf(frame, frameTokens) };
          if (!(open &&= take(readGuestMessage(frame), cost))) return;
        }
      } catch (error) {
        open = false;
        fail(error instanceof FrameTooLarge ? new ProtocolBroken(error.message) : (error as Error));
      }
    });
  }
}
