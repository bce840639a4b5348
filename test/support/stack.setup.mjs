import { ensureKafka } from '../../scripts/setup/setup.mjs';
import { startTestStack } from '../../scripts/stories/test-stack.mjs';

/**
 * Starts the broker and the database server of this test run, once, and passes their addresses to the workers.
 * Jest calls this only when a test that needs them will run.
 */
export default async function setUpStack() {
  // Already set by another project of this run, or by a developer who provides servers for the tests.
  if (process.env.SLUICE_TEST_DATABASE_URL && process.env.SLUICE_TEST_KAFKA_BROKERS) return;
  await ensureKafka({ say: console.error });
  const stack = await startTestStack();
  globalThis.sluiceTestStack = stack;
  process.env.SLUICE_TEST_DATABASE_URL = stack.databaseUrl;
  process.env.SLUICE_TEST_KAFKA_BROKERS = stack.brokers;
  process.env.SLUICE_TEST_STACK_FOLDER = stack.folder;
}
