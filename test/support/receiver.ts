import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  path: string;
  method: string;
  headers: IncomingHttpHeaders;
  text: string;
  body: any;
}

/** An endpoint of ours that webhooks deliver to. `answer` decides the status of each request; by default 200. */
export class Receiver {
  readonly received: Received[] = [];
  answer: (request: Received) => number = () => 200;

  private constructor(private readonly server: Server) {}

  static async start(): Promise<Receiver> {
    const server = createServer();
    const receiver = new Receiver(server);
    server.on('request', (request, response) => {
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
        };
        const status = receiver.answer(received);
        receiver.received.push(received);
        response.writeHead(status).end();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
