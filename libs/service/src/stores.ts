import { setTimeout as sleep } from 'node:timers/promises';
import { type Service, topicAccess, topicSpecsOf } from '#contracts';
import { type DatabaseConfig, explainDatabaseError, type Schema, schemaState } from '#database';
import { checkTopics, explainKafkaError, type KafkaClient, reasonOf, type TopicSettings, wrongTopics } from '#messaging';
import type { Log } from '#observability';
import { CannotStart, explainOutage } from './explain.js';
import type { Readiness } from './health.js';
import { ServiceConfig } from './service.config.js';
import { within } from './within.js';

export interface StoresOptions {
  service: Service;
  /** A client that does not retry. */
  kafka: KafkaClient;
  brokers: string[];
  topics: TopicSettings;
  database: DatabaseConfig;
  schema: Schema;
  /** When to give up, as from performance.now(): the clock of a machine that has just started may be corrected meanwhile. */
  deadline: number;
  readiness: Readiness;
  log: Log;
}

/**
 * Resolves when Kafka and PostgreSQL respond and `sluice migrate` has brought both to this version.
 * @throws CannotStart, or AggregateError of two, if they do not before the deadline, or if waiting does not help: credentials, certificates, permissions, wrong topics
 */
export async function waitForStores({
  service,
  kafka,
  brokers,
  topics,
  database,
  schema,
  deadline,
  readiness,
  log,
}: StoresOptions): Promise<void> {
  const kafkaName = `Kafka at ${brokers.join(',')}`;
  const specs = topicSpecsOf(service);
  const group = `${topicAccess(service).groupPrefix}requests`;
  const checkKafka = async (): Promise<string | undefined> => {
    try {
      const { missing, wrong, different } = await checkTopics(kafka, specs, topics);
      if (wrong.length > 0) throw new CannotStart(wrongTopics(wrong));
      if (missing.length > 0) return `${missing.join(', ')} missing; run \`sluice migrate\`, or grant what \`sluice kafka acls\` prints`;
      // a broker that has just started responds, but consumers cannot join before it has loaded the groups
      await kafka.withAdmin(async (admin) => {
        // kafkajs then knows the brokers, one of which coordinates the group
        await admin.describeCluster();
        await admin.describeGroups([group]);
      });
      for (const difference of different) log.warn(difference);
      return undefined;
    } catch (error) {
      const explanation = explainKafkaError(error);
      if (explanation !== undefined) throw new CannotStart(explanation);
      if (error instanceof CannotStart) throw error;
      return reasonOf(error);
    }
  };

  const { host } = new URL(database.serverUrl);
  const name = database.nameOf(service);
  const checkDatabase = async (): Promise<string | undefined> => {
    try {
      const { missing, unknown } = await schemaState(database.serverUrl, name, schema);
      if (missing.length > 0) return `the schema of database ${name} is older than this version; run \`sluice migrate\``;
      // the order of an upgrade: first the schema, then the services
      if (unknown.length > 0) log.warn({ database: name, unknown }, 'database.schema-newer');
      return undefined;
    } catch (error) {
      const explanation = explainDatabaseError(error);
      if (explanation !== undefined) throw new CannotStart(explanation);
      return (error as Error).message || (error as { code?: string }).code || 'no connection';
    }
  };

  readiness.starting(`${kafkaName} and PostgreSQL at ${host}`);
  await bothOf([
    waitFor({ name: kafkaName, deadline, log, check: checkKafka }),
    waitFor({ name: `PostgreSQL at ${host}`, deadline, log, check: checkDatabase }),
  ]);
}

/** A store that fails for good is not reported alone when the other one fails at nearly the same time. */
const SAME_TIME_MS = 1000;

async function bothOf(waits: Promise<void>[]): Promise<void> {
  const failures: Error[] = [];
  for (const wait of waits) wait.catch((error: Error) => failures.push(error));
  try {
    await Promise.all(waits);
  } catch (error) {
    await Promise.race([Promise.allSettled(waits), sleep(SAME_TIME_MS)]);
    throw failures.length > 1 ? new AggregateError(failures) : error;
  }
}

interface WaitOptions {
  /** The name of what is awaited, such as "Kafka at kafka:9092". */
  name: string;
  /** When to give up, as from performance.now(). */
  deadline: number;
  log: Log;
  /**
   * Resolves with the reason to keep waiting, or with undefined if there is nothing to wait for.
   * @throws CannotStart when waiting does not help
   */
  check(): Promise<string | undefined>;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 500;
/** Stores that start together with the services take a few seconds. */
const REPORT_AFTER_MS = 3000;
const REPORT_EVERY_MS = 10_000;
/** A store that accepts the login and then hangs keeps a check waiting, perhaps without end. The time limit of connections is not longer. */
const PATIENCE_MS = 10_000;

/** Waits, and logs the reason after three seconds and then every ten. Throws CannotStart at the deadline, also if a check hangs. */
export async function waitFor({ name, deadline, log, check }: WaitOptions): Promise<void> {
  let reportAt = performance.now() + REPORT_AFTER_MS;
  let checking: Promise<string | undefined> | undefined;
  const late = new Error(`no response within ${PATIENCE_MS / 1000} s`);
  let reason: string | undefined = 'no response';
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    // a check that hangs is not started a second time
    checking ??= check().finally(() => (checking = undefined));
    const ms = Math.min(PATIENCE_MS, Math.max(deadline - performance.now(), 1));
    reason = await within(ms, checking, () => late).catch((error: unknown) => {
      if (error !== late) throw error;
      // if the deadline comes first, the reason before says more
      return ms < PATIENCE_MS ? reason : late.message;
    });
    if (reason === undefined) return;
    const now = performance.now();
    if (now >= deadline) throw new CannotStart(`gave up waiting for ${name}: ${reason}`);
    if (now >= reportAt) {
      log.info({ reason }, `waiting for ${name}`);
      reportAt = now + REPORT_EVERY_MS;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** Retries work that needs the stores while they are down, up to the time limit of a start. Throws at once if waiting does not help. */
export async function retryUntilStoresRespond<T>(log: Log, work: () => Promise<T>): Promise<T> {
  let result!: T;
  await waitFor({
    name: 'the stores',
    deadline: performance.now() + ServiceConfig.read().startupTimeoutMs,
    log,
    check: async () => {
      try {
        result = await work();
        return undefined;
      } catch (error) {
        const reason = explainOutage(error);
        if (reason === undefined) throw error;
        return reason;
      }
    },
  });
  return result;
}
