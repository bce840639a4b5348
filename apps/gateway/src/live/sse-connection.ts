import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { closeOf } from '#http-server';
import type { AccountStreams, Stream } from './account-streams.js';
import { type Outlet, MOST_PENDING_BYTES } from './live-client.js';

/** A response of Server-Sent Events, written without Fastify, which has handed it over. */
export class SseConnection implements Outlet, Stream {
  /** Resolves when it has ended, for whatever reason. */
  readonly closed: Promise<void>;
  wasCutOff = false;
  private readonly response: ServerResponse;
  private ended = false;
  /** Frames that wait for a turn. */
  private queue: Buffer[] = [];
  private queuedBytes = 0;
  /** The number of frames that were written to the response and not yet sent. */
  private written = 0;
  private readonly whenSent: (() => void)[] = [];
  /** Frames that are in memory for it, and how often. */
  private readonly held = new Map<Buffer, number>();

  /** `begin` sends the headers. */
  constructor(
    private readonly reply: FastifyReply,
    private readonly account: AccountStreams,
  ) {
    this.response = reply.raw;
    account.join();
    // the client may have disconnected while the request was authenticated
    this.closed = closeOf(this.response).then(() => {
      this.drop();
      account.leave();
    });
    // the client has disconnected: 'close' follows
    this.response.on('error', () => {});
    // nothing was sent for a while: the server is about to close the connection if anything is pending
    this.response.on('timeout', () => {
      if (this.response.writableLength > 0) this.cutOff();
    });
  }

  get isClosed(): boolean {
    return this.ended;
  }

  get mayRemember(): number {
    return this.account.emitsOfEach;
  }

  /** Sends the headers. After that, an error can no longer change the status. */
  begin(): void {
    this.reply.hijack();
    this.response.writeHead(200, {
      // headers that the hooks have set, such as the request id
      ...this.reply.getHeaders(),
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      // otherwise nginx would buffer the events
      'x-accel-buffering': 'no',
    } as OutgoingHttpHeaders);
    this.response.flushHeaders();
  }

  get pending(): number {
    return this.queuedBytes + this.response.writableLength;
  }

  hold(frame: Buffer): void {
    if (this.ended) return;
    this.held.set(frame, (this.held.get(frame) ?? 0) + 1);
    this.account.hold(this, frame);
  }

  release(frame: Buffer): void {
    const times = this.held.get(frame);
    // it has been dropped
    if (times === undefined) return;
    if (times > 1) this.held.set(frame, times - 1);
    else this.held.delete(frame);
    this.account.release(this, frame);
  }

  write(frame: Buffer): void {
    this.hold(frame);
    if (this.ended) return;
    if (this.queue.length === 0 && this.account.mayWrite(this, frame)) return this.writeNow(frame);
    this.queue.push(frame);
    this.queuedBytes += frame.length;
  }

  writeNext(): { bytes: number; more: boolean } {
    const frame = this.queue.shift();
    if (!frame) return { bytes: 0, more: false };
    this.queuedBytes -= frame.length;
    this.writeNow(frame);
    return { bytes: frame.length, more: this.queue.length > 0 };
  }

  /** Like `write`, for periodic comments: detects a client that does not read at all. */
  beat(frame: Buffer): void {
    if (this.pending > MOST_PENDING_BYTES) this.cutOff();
    else this.write(frame);
  }

  async drained(): Promise<void> {
    if (this.ended || this.isSent) return;
    await Promise.race([new Promise<void>((resolve) => this.whenSent.push(resolve)), this.closed]);
  }

  cutOff(): void {
    this.wasCutOff = true;
    this.destroy();
  }

  /** Ends it gracefully, after what is pending. */
  end(): void {
    if (this.ended) return;
    while (this.writeNext().more);
    this.ended = true;
    this.response.end();
  }

  /** The same for a client that may not read: after the timeout, pending bytes are discarded. Resolves when it is closed. */
  async endWithin(ms: number): Promise<void> {
    this.end();
    const patience = setTimeout(() => this.destroy(), ms);
    await this.closed;
    clearTimeout(patience);
  }

  destroy(): void {
    this.drop();
    // a reset, because the kernel would keep what the client has not read for minutes
    this.response.socket?.resetAndDestroy();
    this.response.destroy();
  }

  private writeNow(frame: Buffer): void {
    this.written++;
    this.response.write(frame, () => {
      // it has been dropped
      if (this.written === 0) return;
      this.written--;
      this.account.sent(1);
      this.release(frame);
      if (this.isSent) for (const resolve of this.whenSent.splice(0)) resolve();
    });
    this.account.wrote();
  }

  private get isSent(): boolean {
    return this.written === 0 && this.queue.length === 0;
  }

  /** Releases what was not sent, and never will be. */
  private drop(): void {
    this.ended = true;
    this.queue = [];
    this.queuedBytes = 0;
    this.account.forget(this);
    this.account.sent(this.written);
    this.written = 0;
    for (const [frame, times] of this.held) for (let n = 0; n < times; n++) this.account.release(this, frame);
    this.held.clear();
  }
}
