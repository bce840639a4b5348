import type { Socket } from 'node:net';
import { encodeFrame, FrameReader, FrameTooLarge } from '../wire/frames.js';
import { ProtocolBroken, readGuestMessage, tokensOf } from '../wire/guest-message.js';
import type { FromGuest, ToGuest } from '../wire/messages.js';

/** The cost of reading a frame. */
export interface FrameCost {
  bytes: number;
  /** The number of tokens in its JSON */
  tokens: number;
  /** The number of pieces in which it arrived; 0 for one that arrived with the frame before it */
  pieces: number;
  /** The time of the main thread that it took */
  ms: number;
}

// A frame may arrive in this many pieces, and one more for every page of the largest one. Reading a byte costs as much as reading a page
const fewPieces = 1000;
const pageBytes = 4096;
/** Measured: the time of the main thread that a piece takes before it is here. */
export const pieceMs = 0.006;

/** The parent's end of the frames of one process. */
export class RunnerChannel {
  private readonly reader: FrameReader;

  constructor(
    private readonly socket: Socket,
    private readonly limits: { frameBytes: number; frameTokens: number },
  ) {
    this.reader = new FrameReader(limits.frameBytes);
    socket.on('error', () => {});
  }

  /** Of the frame that has not arrived completely. */
  get pendingBytes(): number {
    return this.reader.pendingBytes;
  }

  /** @returns the time that it took, in ms */
  send(message: ToGuest): number {
    const begun = performance.now();
    this.socket.write(encodeFrame(message));
    return performance.now() - begun;
  }

  /**
   * @param take receives one message and its cost, and returns false to stop reading
   * @param fail called if a frame is invalid or `take` threw, with the time of the main thread that it took until then
   */
  receive(take: (message: FromGuest, cost: FrameCost) => boolean, fail: (error: Error, ms: number) => void): void {
    const { frameBytes, frameTokens } = this.limits;
    let open = true;
    /** Of the next frame */
    let pieces = 0;
    let ms = 0;
    this.socket.on('data', (chunk: Buffer) => {
      let begun = performance.now();
      try {
        if (!open) return;
        if (++pieces > fewPieces + frameBytes / pageBytes) throw new ProtocolBroken('a frame in too many pieces');
        ms += pieceMs;
        for (const frame of this.reader.read(chunk)) {
          const tokens = tokensOf(frame, frameTokens);
          const message = readGuestMessage(frame);
          const cost = { bytes: frame.length, tokens, pieces, ms: ms + performance.now() - begun };
          [pieces, ms] = [0, 0];
          if (!(open &&= take(message, cost))) return;
          begun = performance.now();
        }
        ms += performance.now() - begun;
      } catch (error) {
        open = false;
        fail(error instanceof FrameTooLarge ? new ProtocolBroken(error.message) : (error as Error), ms + performance.now() - begun);
      }
    });
  }
}
