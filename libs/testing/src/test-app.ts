import type { Type } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { Test, type TestingModule, type TestingModuleBuilder } from '@nestjs/testing';
import { DataSource } from 'typeorm';
import * as contracts from '#contracts';
import { DatabaseConfig } from '#database';
import { Consumers, KafkaClient, KafkaConfig, type Messages, type Publisher } from '#messaging';
import { createLog } from '#observability';
import { SecretBox } from '#secrets';
import { DatabaseRestores, ServiceModule } from '#service';
import { FakeMessages } from './fake-messages.js';

/**
 * An app's module as its service starts it, without Kafka and without a connection to a database. `compile()` constructs every provider but starts
 * none.
 */
export function testApp(module: Type, messages = new FakeMessages()): TestingModuleBuilder {
  const log = createLog('test', 'silent');
  const consumers = new Consumers();
  const shared = ServiceModule.with({
    log,
    box: new SecretBox([]),
    // makes producers and consumers, and connects to nothing by itself
    kafka: new KafkaClient(KafkaConfig.read({}), 'test', log),
    publisher: {} as Publisher,
    messages: messages as unknown as Messages,
    consumers,
    restores: new DatabaseRestores(consumers, log),
  });
  return Test.createTestingModule({ imports: [module, shared] })
    .overrideProvider(DatabaseConfig)
    .useValue(DatabaseConfig.read({ DATABASE_URL: 'postgres://nowhere' }))
    .overrideProvider(DataSource)
    .useValue(new DataSource({ type: 'postgres' }));
}

/** The patterns of the messages that the app's controllers handle: the names of its commands and queries, and `<group> <topic>` of the records that it reads. */
export function handledMessages(app: TestingModule): string[] {
  const controllers = [...app.get(ModulesContainer).values()].flatMap((module) => [...module.controllers.values()]);
  return controllers.flatMap(({ metatype }) => {
    const prototype = (metatype as Type<object>).prototype as Record<string, object>;
    return Object.getOwnPropertyNames(prototype).flatMap((name) => {
      const handler = prototype[name];
      return typeof handler === 'function' ? ((Reflect.getMetadata('microservices:pattern', handler) as string[] | undefined) ?? []) : [];
    });
  });
}

/** The commands and queries that a service owns: those whose names begin with the name of the service. */
export function ownedRequests(service: contracts.Service): string[] {
  return Object.values(contracts as Record<string, unknown>).flatMap((each) => {
    const { kind, name, topic } = (each ?? {}) as { kind?: string; name?: string; topic?: string };
    return (kind === 'command' || kind === 'query') && topic === undefined && name?.startsWith(`${service}.`) ? [name] : [];
  });
}
