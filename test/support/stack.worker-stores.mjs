import { startTestStack } from '../../scripts/stories/test-stack.mjs';

/**
 * Starts a broker and a database server for each worker but the first, which uses those of the test run. `stack.use-worker-stores.mjs` passes their
 * addresses to the stories.
 *
 * @returns {Promise<() => Promise<void>>} a function that stops them
 */
export async function startStoresForWorkers(workers) {
  const started = await Promise.allSettled(Array.from({ length: workers - 1 }, startTestStack));
  const stacks = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const stop = async () => {
    delete process.env.SLUICE_TEST_STACKS;
    await Promise.all(stacks.map((stack) => stack.stop()));
  };
  const failed = started.find((result) => result.status === 'rejected');
  if (failed) {
    await stop();
    throw failed.reason;
  }
  process.env.SLUICE_TEST_STACKS = JSON.stringify(stacks.map(({ databaseUrl, brokers, folder }) => ({ databaseUrl, brokers, folder })));
  return stop;
}
