import 'reflect-metadata';
import { hostname } from 'node:os';
import type { INestMicroservice, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { ConfigError, readConfig } from '#config';
import type { Service } from '#contracts';
import { isTransient } from '#database';
import { createKafka, KafkaTransport, Messages, MessagingModule, Publisher, readKafkaConfig, type TransportOptions } from '#messaging';
import { collectProcessMetrics, createLog, type Log, NestLog } from '#observability';
import { HealthServer } from './health-server.js';
import { PayloadPipe } from './payload-pipe.js';
import { LogModule } from './log.module.js';
import { RpcErrors } from './rpc-errors.js';

export interface ServiceOptions {
  name: Service;
  module: Type;
  /** For a service that is asked over HTTP instead of Kafka: makes the HTTP application and says where it listens. */
  http?: {
    create(module: Type, log: Log): Promise<NestFastifyApplication>;
    listen(app: NestFastifyApplication): Promise<void>;
  };
}

/** Shorter than the patience of whoever stops us. */
const SHUTDOWN_MS = 8_000;

/**
 * The life of an app's process: reads the configuration, connects, starts the module, says `ready` to whoever started
 * it, and stops in order on SIGTERM, SIGINT, or when its starter has gone.
 */
export async function runService({ name, module, http }: ServiceOptions): Promise<void> {
  const log = createLog(name);
  // the launcher may go, even by kill -9, before there is anything to stop in order
  const launcherGone = () => process.exit(0);
  process.once('disconnect', launcherGone);
  process.on('uncaughtException', (error) => die(log, error, 'process.uncaught-exception'));
  process.on('unhandledRejection', (error) => die(log, error, 'process.unhandled-rejection'));
  try {
    collectProcessMetrics();
    const config = readConfig((env) => ({
      kafka: readKafkaConfig(env),
      healthPort: env.integer('SLUICE_HEALTH_PORT', 0, { max: 65_535 }),
    }));
    // partitions are handed out in the order of these names: after an outage of the broker each process has its own again, and repeats less
    const kafka = createKafka(config.kafka, `${name}-${hostname()}-${process.pid}`, log);
    const publisher = new Publisher(kafka);
    const messages = new Messages(name, kafka, publisher, log);
    await Promise.all([publisher.connect(), messages.connect()]);

    const root = rootModule(module, LogModule.with(log), MessagingModule.with({ kafka, publisher, messages }));
    const app = http
      ? await startHttp(http, root, log)
      : await startMicroservice(root, log, { service: name, kafka, publisher, log, isTransient });
    const health = config.healthPort === 0 ? undefined : await HealthServer.listen(config.healthPort);
    process.off('disconnect', launcherGone);
    stopInOrder(log, async () => {
      await app.close();
      await messages.close();
      await publisher.close();
      await health?.close();
    });
    log.info({ pid: process.pid }, 'service.ready');
    process.send?.({ type: 'ready' });
  } catch (error) {
    if (error instanceof ConfigError) for (const problem of error.problems) log.fatal(problem);
    else log.fatal({ err: error }, 'service.not-started');
    process.exit(1);
  }
}

async function startHttp({ create, listen }: NonNullable<ServiceOptions['http']>, root: Type, log: Log): Promise<NestFastifyApplication> {
  const app = await create(root, log);
  await listen(app);
  return app;
}

/** Payloads are validated, and what a handler throws reaches the transport as it is. */
async function startMicroservice(root: Type, log: Log, options: TransportOptions): Promise<INestMicroservice> {
  const microservice = await NestFactory.createMicroservice(root, { strategy: new KafkaTransport(options), logger: new NestLog(log) });
  microservice.useGlobalPipes(new PayloadPipe());
  microservice.useGlobalFilters(new RpcErrors());
  await microservice.listen();
  return microservice;
}

function rootModule(...imports: object[]): Type {
  class RootModule {}
  Reflect.defineMetadata('imports', imports, RootModule);
  return RootModule;
}

function stopInOrder(log: Log, close: () => Promise<void>): void {
  let stopping = false;
  const stop = (reason: string) => {
    if (stopping) return;
    stopping = true;
    log.info({ reason }, 'service.stopping');
    setTimeout(() => die(log, new Error(`not stopped after ${SHUTDOWN_MS} ms`), 'service.stop-timed-out'), SHUTDOWN_MS).unref();
    close().then(
      () => process.exit(0),
      (error: Error) => die(log, error, 'service.stop-failed'),
    );
  };
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
  // the launcher is gone, even by kill -9: nobody would stop us any more
  process.on('disconnect', () => stop('launcher gone'));
  if (process.send && !process.connected) stop('launcher gone');
}

function die(log: Log, error: unknown, what: string): void {
  log.fatal({ err: error }, what);
  process.exit(1);
}
