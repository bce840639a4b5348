import { afterAll } from '@jest/globals';
import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { request as requestTls } from 'node:https';
import type { Api } from './api.js';

export interface Streamed {
  id: string;
  /** The lines of `data`, joined. */
  text: string;
  event: any;
}

const open = new Set<EventStream>();
// one that a failed test has left open would keep jest running
afterAll(() => {
  for (const stream of open) stream.close();
});

/** A client of Server-Sent Events. */
export class EventStream {
  readonly events: Streamed[] = [];
  readonly comments: string[] = [];
  /** Resolves when the server or `close` has ended it. */
  readonly closed: Promise<void>;
  private rest = '';
  private onEvent: (() => void) | undefined;

  private constructor(
    private readonly outgoing: ClientRequest,
    readonly response: IncomingMessage,
    reading: boolean,
  ) {
    response.setEncoding('utf8');
    this.closed = new Promise((resolve) => void response.once('close', resolve));
    open.add(this);
    void this.closed.then(() => open.delete(this));
    // a connection that was closed
    response.on('error', () => {});
    if (reading) this.read();
  }

  /** Resolves when the headers have arrived; throws if the status is not 200. */
  static open(api: Api, path: string, { headers = {}, reading = true } = {}): Promise<EventStream> {
    return new Promise((resolve, reject) => {
      const outgoing = (api.baseUrl.startsWith('https:') ? requestTls : request)(`${api.baseUrl}${path}`, {
        agent: false,
        headers: { authorization: `Bearer ${api.account.api_key}`, ...headers },
      });
      outgoing.on('error', reject);
      outgoing.on('response', (response) => {
        if (response.statusCode === 200) return resolve(new EventStream(outgoing, response, reading));
        response.resume();
        reject(new Error(`no stream: ${response.statusCode}`));
      });
      outgoing.end();
    });
  }

  get headers(): IncomingHttpHeaders {
    return this.response.headers;
  }

  /** Starts reading what the server sends. */
  read(): void {
    this.response.on('data', (text: string) => {
      const frames = (this.rest + text).split('\n\n');
      this.rest = frames.pop() ?? '';
      for (const frame of frames) this.take(frame.split('\n'));
    });
  }

  /** Resolves with the next event. */
  next(): Promise<void> {
    return new Promise((resolve) => (this.onEvent = resolve));
  }

  close(): void {
    this.outgoing.destroy();
  }

  private take(lines: string[]): void {
    const field = (name: string) => lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2));
    this.comments.push(...field(''));
    const [id] = field('id');
    if (id === undefined) return;
    const text = field('data').join('\n');
    this.events.push({ id, text, event: JSON.parse(text).event });
    this.onEvent?.();
  }
}
