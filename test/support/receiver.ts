import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { listenForTarget } from './target.js';

export interface Received {
  path: string;
  method: string;
  headers: IncomingHttpHeaders;
  text: string;
  body: any;
  /** When the headers arrived, in ms since the epoch. */
  at: number;
}

/** An endpoint for webhooks. `respondWith` decides the status of each response; default: 200. */
export class Receiver {
  readonly received: Received[] = [];
  respondWith: (request: Received) => number | Promise<number> = () => 200;

  private constructor(
    private readonly server: Server,
    private readonly host: string,
  ) {}

  static async start(): Promise<Receiver> {
    const server = createServer();
    const receiver = new Receiver(server, await listenForTarget(server));
    server.on('request', (request, response) => {
      const at = Date.now();
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        const received = {
          path: request.url ?? '',
          method: request.method ?? '',
          headers: request.headers,
          text,
          body: text === '' ? undefined : (JSON.parse(text) as unknown),
          at,
        };
        const status = receiver.respondWith(received);
        receiver.received.push(received);
        if (typeof status === 'number') response.writeHead(status).end();
        else void status.then((later) => response.writeHead(later).end());
      });
    });
    return receiver;
  }

  get url(): string {
    return `http://${this.host}/`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
