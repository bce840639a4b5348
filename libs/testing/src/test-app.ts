import type { Type } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
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
export const handledMessages = (app: TestingModule): string[] =>
  handlersOf(app).flatMap((handler) => (Reflect.getMetadata('microservices:pattern', handler) as string[] | undefined) ?? []);

/** The part of an EntryPoint (handlers.ts of libs/messaging) that names its topic. */
interface Entry {
  topic?: string;
  source?: { topic: string };
}

/** The topics whose records the app's controllers read, in alphabetical order. */
export function topicsReadBy(app: TestingModule): string[] {
  const topics = handlersOf(app).flatMap((handler) => {
    const extras = Reflect.getMetadata('microservices:pattern_extras', handler) as { entry: Entry } | undefined;
    return extras?.entry.topic ?? extras?.entry.source?.topic ?? [];
  });
  return [...new Set(topics)].sort();
}

/** The topics that a service may read, without those of requests and replies, in alphabetical order. */
export const topicsReadableBy = (service: contracts.Service): string[] =>
  contracts
    .topicAccess(service)
    .reads.filter((topic) => ![contracts.requestsTopic(service), contracts.repliesTopic(service)].includes(topic))
    .sort();

/** The methods with a schedule (`@Interval`, `@Cron`, `@Timeout`) that nothing calls, because the app does not import `ScheduleModule`. */
export function idleSchedules(app: TestingModule): string[] {
  const modules = [...app.get(ModulesContainer).values()];
  if (modules.some(({ metatype }) => metatype === ScheduleModule)) return [];
  const scheduled = methodsOf(modules.flatMap(({ providers }) => [...providers.values()])).filter((method) =>
    Reflect.hasMetadata('SCHEDULER_TYPE', method),
  );
  return scheduled.map(({ name }) => name);
}

/** The methods of the app's controllers. */
function handlersOf(app: TestingModule): Method[] {
  return methodsOf([...app.get(ModulesContainer).values()].flatMap(({ controllers }) => [...controllers.values()]));
}

type Method = { name: string };

function methodsOf(wrappers: { metatype: unknown }[]): Method[] {
  return wrappers.flatMap(({ metatype }) => {
    if (typeof metatype !== 'function') return [];
    const properties = Object.values(Object.getOwnPropertyDescriptors(metatype.prototype ?? {}));
    return properties.flatMap(({ value }) => (typeof value === 'function' ? [value as Method] : []));
  });
}

/** The commands and queries that a service owns: those whose names begin with the name of the service. */
export function ownedRequests(service: contracts.Service): string[] {
  return Object.values(contracts as Record<string, unknown>).flatMap((each) => {
    const { kind, name, topic } = (each ?? {}) as { kind?: string; name?: string; topic?: string };
    return (kind === 'command' || kind === 'query') && topic === undefined && name?.startsWith(`${service}.`) ? [name] : [];
  });
}
