import { createServer, type Server } from 'node:http';
import { consumerStates } from '#messaging';
import { metrics } from '#observability';
import type { Readiness } from './readiness.js';

/**
 * `/health/live` (the process works, regardless of the stores), `/health/ready` (it should receive work) and `/metrics`, on a separate
 * port: for containers, off by default.
 */
export class HealthServer {
  private constructor(private readonly server: Server) {}

  static async listen(port: number, readiness: Readiness): Promise<HealthServer> {
    const server = createServer((request, response) => {
      const json = (status: number, body: object) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
      switch (request.url?.split('?', 1)[0]) {
        case '/health/live':
          return json(200, { status: 'ok' });
        case '/health/ready':
          return void readiness
            .reasons()
            .then((reasons) =>
              reasons.length === 0
                ? json(200, { status: 'ok', consumers: consumerStates() })
                : json(503, { status: 'unavailable', reasons, consumers: consumerStates() }),
            );
        case '/metrics':
          return void metrics.metrics().then((text) => response.writeHead(200, { 'content-type': metrics.contentType }).end(text));
        default:
          return json(404, { status: 'not found' });
      }
    });
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, resolve));
    return new HealthServer(server);
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
