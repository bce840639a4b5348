import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { type Outlet, MOST_PENDING_BYTES } from './live-client.js';

/** An answer of Server-Sent Events that is being written: Fastify has let go of it. */
export class SseConnection implements Outlet {
  /** Resolves when it has ended, however it has. */
  readonly closed: Promise<void>;
  wasCutOff = false;
  private readonly response: ServerResponse;
  private ended = false;

  /** The headers wait for `begin`. */
  constructor(private readonly reply: FastifyReply) {
    this.response = reply.raw;
    this.closed = new Promise((resolve) => {
      this.response.once('close', () => {
        this.ended = true;
        resolve();
      });
    });
    // a client that is gone: 'close' follows
    this.response.on('error', () => {});
  }

  get isClosed(): boolean {
    return this.ended;
  }

  /** Sends the headers: from here on there are no other answers. */
  begin(): void {
    this.reply.hijack();
    this.response.writeHead(200, {
      // what the hooks have set, such as the request's id
      ...this.reply.getHeaders(),
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      // nginx would collect the events
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

  /** As `write`, for what comes whether there are events or not: here a client is found out that reads nothing at all. */
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

  /** Ends it in order, behind what is pending. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.response.end();
  }

  /** The same, for a client that may not read: after so long what is pending is lost. Resolves when it's closed. */
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
