import { createServer, type Server } from 'node:http';
import { consumerStates } from '#messaging';
import { metrics } from '#observability';

/** A fetch is answered every 250 ms when there is nothing: a consumer that is silent for this long is stuck. */
const SILENT_MS = 60_000;

/** `/health/live`, `/health/ready` and `/metrics`, on a port of its own: for containers, off by default. */
export class HealthServer {
  private constructor(private readonly server: Server) {}

  static async listen(port: number): Promise<HealthServer> {
    const server = createServer((request, response) => {
      if (request.url === '/metrics') {
        void metrics.metrics().then((text) => response.writeHead(200, { 'content-type': metrics.contentType }).end(text));
        return;
      }
      const stuck = consumerStates().filter((state) => !state.running || Date.now() - state.lastFetchAt > SILENT_MS);
      const ok = request.url === '/health/live' || (request.url === '/health/ready' && stuck.length === 0);
      response
        .writeHead(ok ? 200 : request.url === '/health/ready' ? 503 : 404, { 'content-type': 'application/json' })
        .end(JSON.stringify({ status: ok ? 'ok' : 'unavailable', consumers: consumerStates() }));
    });
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, resolve));
    return new HealthServer(server);
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.server.close(() => resolve()));
  }
}
