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

// A frame may arrive in this many pieces, and one more for every page of the largest one. Reading a byte costs as much as reading a page
const fewPieces = 1000;
const pageBytes = 4096;

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
    let pieces = 0;
    this.socket.on('data', (chunk: Buffer) => {
      try {
        if (!open) return;
        if (++pieces > fewPieces + frameBytes / pageBytes) throw new ProtocolBroken('a frame in too many pieces');
        for (const frame of reader.read(chunk)) {
          pieces = 0;
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
