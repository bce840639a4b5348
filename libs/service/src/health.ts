import { createServer, type Server } from 'node:http';
import { consumerStates } from '#messaging';
import { gauge, metrics } from '#observability';
import type { ServiceConfig } from './service.config.js';
import { within } from './within.js';

/** A consumer without contact to the brokers for this long receives nothing. */
const SILENT_MS = 20_000;
/** How long a probe waits for the database. */
const DATABASE_WITHIN_MS = 2000;

const ready = gauge('ready', 'Whether the process can work: 1, or 0 while it starts, stops, or has no contact with Kafka or PostgreSQL.');

/** The reasons for which consumers receive nothing. */
export const silentConsumers = (states: ReturnType<typeof consumerStates>): string[] =>
  states
    .filter(({ vital, running, silentMs }) => vital && (!running || silentMs > SILENT_MS))
    .map(({ group, running, planning, silentMs }) =>
      running && planning
        ? `consumer group ${group} has planned its records for ${Math.floor(silentMs / 1000)} s: it waits for PostgreSQL or another service`
        : `consumer group ${group} has no contact with Kafka`,
    );

/**
 * Whether the process should receive work, and if not, why:
 *
 *   starting: what it waits for ──► started: consumers and database ──► stopping
 */
export class Readiness {
  private phase: 'starting' | 'started' | 'stopping' = 'starting';
  private waitingFor = 'its configuration';
  private checkDatabase: () => Promise<unknown> = () => Promise.resolve();
  private isPoolBusy: () => boolean = () => false;
  private checking: Promise<string | undefined> | undefined;

  starting(waitingFor: string): void {
    this.waitingFor = waitingFor;
  }

  /** checkDatabase: rejects if the database does not respond. isPoolBusy: whether statements wait because all connections are in use. */
  started(checkDatabase: () => Promise<unknown>, isPoolBusy = () => false): void {
    this.checkDatabase = checkDatabase;
    this.isPoolBusy = isPoolBusy;
    if (this.phase === 'starting') this.phase = 'started';
  }

  stopping(): void {
    this.phase = 'stopping';
  }

  get isStopping(): boolean {
    return this.phase === 'stopping';
  }

  /** Empty: ready. */
  async reasons(): Promise<string[]> {
    if (this.phase === 'stopping') return ['the service is stopping'];
    if (this.phase === 'starting') return [`the service is starting: it waits for ${this.waitingFor}`];
    const database = await this.database();
    return [...silentConsumers(consumerStates()), ...(database === undefined ? [] : [database])];
  }

  /**
   * Concurrent probes share a query, and none is sent while one hangs: it occupies a connection of the pool. A finished one is not reused, because the
   * database may have stopped since.
   */
  private async database(): Promise<string | undefined> {
    this.checking ??= this.checkDatabase()
      .then(
        () => undefined,
        (error: Error) => `PostgreSQL does not respond: ${error.message}`,
      )
      .finally(() => (this.checking = undefined));
    const problem = () =>
      this.isPoolBusy() ? 'all connections to PostgreSQL (SLUICE_DATABASE_POOL) are in use' : 'PostgreSQL does not respond';
    const late = () => new Error(`${problem()}: no response within ${DATABASE_WITHIN_MS / 1000} s`);
    return within(DATABASE_WITHIN_MS, this.checking, late).catch((error: Error) => error.message);
  }
}

/**
 * `/health/live` (the process works, regardless of the stores), `/health/ready` (it should receive work) and `/metrics`, on a separate
 * port: for containers, off by default.
 */
export class HealthServer {
  private constructor(private readonly server: Server) {}

  static async listen(
    { healthPort, healthHost }: Pick<ServiceConfig, 'healthPort' | 'healthHost'>,
    readiness: Readiness,
  ): Promise<HealthServer> {
    const server = createServer((request, response) => {
      const json = (status: number, body: object) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
      // absolute, if a proxy sends it
      switch (URL.parse(request.url ?? '/', 'http://host')?.pathname) {
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
          return void readiness
            .reasons()
            .then((reasons) => {
              ready.set(reasons.length === 0 ? 1 : 0);
              return metrics.metrics();
            })
            .then((text) => response.writeHead(200, { 'content-type': metrics.contentType }).end(text));
        default:
          return json(404, { status: 'not found' });
      }
    });
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(healthPort, healthHost || undefined, resolve));
    return new HealthServer(server);
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
