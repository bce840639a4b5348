import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { type Outlet, MOST_PENDING_BYTES } from './live-client.js';

/** A response of Server-Sent Events, written without Fastify, which has handed it over. */
export class SseConnection implements Outlet {
  /** Resolves when it has ended, for whatever reason. */
  readonly closed: Promise<void>;
  wasCutOff = false;
  private readonly response: ServerResponse;
  private ended = false;

  /** `begin` sends the headers. */
  constructor(private readonly reply: FastifyReply) {
    this.response = reply.raw;
    this.closed = new Promise((resolve) => {
      this.response.once('close', () => {
        this.ended = true;
        resolve();
      });
    });
    // the client has disconnected: 'close' follows
    this.response.on('error', () => {});
  }

  get isClosed(): boolean {
    return this.ended;
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
    return this.response.writableLength;
  }

  write(frame: Buffer): void {
    if (!this.ended) this.response.write(frame);
  }

  /** Like `write`, for periodic comments: detects a client that does not read at all. */
  beat(frame: Buffer): void {
    if (this.pending > MOST_PENDING_BYTES) this.cutOff();
    else this.write(frame);
  }

  async drained(): Promise<void> {
    if (this.ended || !this.response.writableNeedDrain) return;
    await Promise.race([new Promise<void>((resolve) => this.response.once('drain', resolve)), this.closed]);
  }

  cutOff(): void {
    this.wasCutOff = true;
    this.destroy();
  }

  /** Ends it gracefully, after what is pending. */
  end(): void {
    if (this.ended) return;
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
    this.ended = true;
    this.response.destroy();
  }
}
