import 'reflect-metadata';
import {
  Catch,
  type DynamicModule,
  type INestApplicationContext,
  type INestMicroservice,
  type RpcExceptionFilter,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestMicroservice } from '@nestjs/microservices';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { type Observable, throwError } from 'rxjs';
import { checkConfig, type ConfigClass } from '#config';
import type { Service } from '#contracts';
import { checkSealed, Database, DatabaseConfig, isTransient, outageOf, type Schema } from '#database';
import {
  clientIdOf,
  Consumers,
  eachSecond,
  explainKafkaError,
  KafkaClient,
  KafkaConfig,
  KafkaTransport,
  Messages,
  PayloadPipe,
  Publisher,
  TopicsConfig,
} from '#messaging';
import { collectProcessMetrics, createLog, type Log, NestLog } from '#observability';
import { SecretBox, SecretsConfig } from '#secrets';
import { DatabaseRestores } from './database-restores.js';
import { CannotStart, exitCode, logFatal, reasonForLog } from './explain.js';
import { HealthServer, Readiness } from './health.js';
import { freeMemoryWhenIdle } from './idle-memory.js';
import { recreateDeletedTopics } from './recreate-topics.js';
import { ServiceConfig } from './service.config.js';
import { ServiceModule, type Shared } from './service.module.js';
import { onStopCause } from './stop-causes.js';
import { retryUntilStoresRespond, type StoresOptions, waitForStores } from './stores.js';

interface ServiceOptions {
  name: Service;
  module: Type;
  /** Of the service's database. */
  schema: Schema;
  /** The parts of the configuration that belong to this service alone. With SecretsConfig, it can encrypt and decrypt secrets. */
  settings: readonly ConfigClass[];
  /** For a service that also serves HTTP: makes the HTTP application and says where it listens. */
  http?: {
    create(module: DynamicModule, log: Log): Promise<NestFastifyApplication>;
    listen(app: NestFastifyApplication): Promise<void>;
  };
  /** For a service that serves HTTP: asks clients to leave. Called when the service stops, before anything else stops. Their requests are still handled. */
  letClientsLeave?(app: INestApplicationContext): Promise<void>;
}

/** The parts of the configuration that every service has. */
export const COMMON_SETTINGS: readonly ConfigClass[] = [ServiceConfig, KafkaConfig, TopicsConfig, DatabaseConfig];

/** The part of the shutdown time that remains to commit, leave the groups and close the connections. */
const CLOSING_MS = 3000;
const MIN_DRAIN_MS = 1000;

/**
 * The lifecycle of an app's process:
 *
 *   read the configuration ─► wait for the stores ─► connect ─► create the app ─► start it, and its consumers ─► ready
 *     SIGTERM, SIGINT or the launcher's exit: end at once        └──────────── the same causes: shut down ────────────┘
 *
 * Each cause that prevents a start is logged as one line. The exit code is 1, or 78 for a wrong configuration.
 */
export async function runService(options: ServiceOptions): Promise<void> {
  const { name, settings } = options;
  const log = createLog(name, undefined, reasonForLog);
  // the launcher may exit, even by kill -9, before there is anything to shut down
  const setStop = onStopCause(() => process.exit(0));
  const readiness = new Readiness();
  process.on('uncaughtException', (error) => die(log, error, 'process.uncaught-exception'));
  process.on('unhandledRejection', (error) => die(log, error, 'process.unhandled-rejection'));
  try {
    eachSecond(collectProcessMetrics());
    checkConfig([...COMMON_SETTINGS, ...settings]);
    const config = ServiceConfig.read();
    const deadline = performance.now() + config.startupTimeoutMs;
    const health = config.healthPort === 0 ? undefined : await HealthServer.listen(config, readiness);
    const box = settings.includes(SecretsConfig) ? SecretsConfig.read().box : new SecretBox([]);
    // for what is repeated anyway
    const kafkaWithoutRetries = new KafkaClient(KafkaConfig.read(), clientIdOf(name), createLog(name, 'silent'), { retries: 0 });
    await openStores(options, { kafka: kafkaWithoutRetries, box, deadline, readiness, log });
    readiness.starting('its consumers to join');
    const shared = await connect(name, config, box, log);
    const { kafka, publisher, messages } = shared;
    let stopRecreating = () => {};
    const app = await startApp(options, shared, (created) => {
      const close = async () => {
        readiness.stopping();
        messages.stopWithin(kafka.drainMs);
        stopRecreating();
        await options.letClientsLeave?.(created);
        await created.close();
        await messages.close();
        await publisher.close();
        await health?.close();
      };
      setStop(inOrder(log, config.shutdownTimeoutMs, close));
    });
    if (readiness.isStopping) return;
    stopRecreating = recreateDeletedTopics(name, kafkaWithoutRetries, TopicsConfig.read(), log);
    const database = app.get(Database, { strict: false });
    readiness.started(
      () => database.query('SELECT 1'),
      () => database.pool.waitingCount > 0,
    );
    freeMemoryWhenIdle();
    log.info({ pid: process.pid }, 'service.ready');
    process.send?.({ type: 'ready' });
  } catch (error) {
    // it may have been stopped in the middle of its start
    if (!readiness.isStopping) die(log, error, 'service.not-started');
  }
}

/** Resolves when both stores are usable, and the secrets in the database can be decrypted. */
async function openStores(
  { name, schema }: ServiceOptions,
  { box, ...options }: Pick<StoresOptions, 'kafka' | 'deadline' | 'readiness' | 'log'> & { box: SecretBox },
): Promise<void> {
  const database = DatabaseConfig.read();
  await waitForStores({
    ...{ service: name, schema, database },
    ...{ brokers: KafkaConfig.read().brokers, topics: TopicsConfig.read() },
    ...options,
  });
  await checkSealed(schema, { serverUrl: database.serverUrl, name: database.nameOf(name), max: 1, log: options.log }, box);
}

async function connect(name: Service, { shutdownTimeoutMs }: ServiceConfig, box: SecretBox, log: Log): Promise<Shared> {
  // partitions are assigned in the order of client ids: after an outage of the broker each process gets its own again, and repeats less
  const kafka = new KafkaClient(KafkaConfig.read(), clientIdOf(name), log, {
    drainMs: Math.max(shutdownTimeoutMs - CLOSING_MS, MIN_DRAIN_MS),
    onFatal: (error, of) => {
      const explanation = explainKafkaError(error);
      die(log, explanation === undefined ? error : new CannotStart(`${explanation} (${of})`), 'kafka.failed');
    },
  });
  const publisher = new Publisher(kafka);
  const messages = new Messages(name, kafka, publisher, log, box);
  await retryUntilStoresRespond(log, () => publisher.connect());
  await messages.connect();
  const consumers = new Consumers();
  return { log, box, kafka, publisher, messages, consumers, restores: new DatabaseRestores(consumers, log) };
}

/** Creates the app; then starts its module, then its consumers, then its HTTP server. `onCreated` is called before its first work. */
async function startApp(
  { name, module, http }: ServiceOptions,
  shared: Shared,
  onCreated: (app: INestApplicationContext) => void,
): Promise<INestApplicationContext> {
  const { log, restores } = shared;
  const root: DynamicModule = { module: RootModule, imports: [module, ServiceModule.with(shared)] };
  const transport = new KafkaTransport({ service: name, ...shared, isTransient, outageOf });
  const beforeStart = async (app: INestApplicationContext) => {
    await restores.start(app.get(Database, { strict: false }));
    onCreated(app);
  };
  return http ? startHttp(http, root, log, transport, beforeStart) : startMicroservice(root, log, transport, beforeStart);
}

type BeforeStart = (app: INestApplicationContext) => Promise<void>;

async function startHttp(
  { create, listen }: NonNullable<ServiceOptions['http']>,
  root: DynamicModule,
  log: Log,
  strategy: KafkaTransport,
  beforeStart: BeforeStart,
): Promise<NestFastifyApplication> {
  const app = await create(root, log);
  // its handlers are registered when it starts, with the pipes and filters that are set here; `init` calls the hooks of both
  const microservice = app.connectMicroservice({ strategy }, { deferInitialization: true }) as NestMicroservice;
  microservice.setIsInitHookCalled(true);
  handleRecords(microservice);
  await beforeStart(app);
  await app.init();
  await app.startAllMicroservices();
  await listen(app);
  return app;
}

async function startMicroservice(
  root: DynamicModule,
  log: Log,
  strategy: KafkaTransport,
  beforeStart: BeforeStart,
): Promise<INestMicroservice> {
  // causes that prevent a start are reported here
  const microservice = await NestFactory.createMicroservice(root, { strategy, logger: new NestLog(log), abortOnError: false });
  handleRecords(microservice);
  await beforeStart(microservice);
  await microservice.listen();
  return microservice;
}

/** Validates payloads, and passes the errors of handlers to the transport unchanged. */
function handleRecords(microservice: INestMicroservice): void {
  microservice.useGlobalPipes(new PayloadPipe());
  microservice.useGlobalFilters(new RpcErrors());
}

/** The app's module, with the log and the connections that every service has. */
class RootModule {}

/** @returns stops the service at its first call */
function inOrder(log: Log, timeoutMs: number, close: () => Promise<void>): (reason: string) => void {
  let stopping = false;
  return (reason) => {
    if (stopping) return;
    stopping = true;
    log.info({ reason }, 'service.stopping');
    setTimeout(() => die(log, new Error(`not stopped after ${timeoutMs} ms`), 'service.stop-timed-out'), timeoutMs).unref();
    close().then(
      () => process.exit(0),
      (error: Error) => die(log, error, 'service.stop-failed'),
    );
  };
}

function die(log: Log, error: unknown, name: string): void {
  logFatal(log, error, name);
  process.exit(exitCode(error));
}

/** Nest converts an error thrown by a handler to "Internal server error"; the transport needs the error itself. */
@Catch()
export class RpcErrors implements RpcExceptionFilter {
  catch(exception: unknown): Observable<never> {
    return throwError(() => exception);
  }
}
