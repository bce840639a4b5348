// In each story's environment. The stores of the test run belong to the first worker.
const stack = JSON.parse(process.env.SLUICE_TEST_STACKS ?? '[]')[Number(process.env.JEST_WORKER_ID) - 2];
if (stack) {
  process.env.SLUICE_TEST_DATABASE_URL = stack.databaseUrl;
  process.env.SLUICE_TEST_KAFKA_BROKERS = stack.brokers;
  process.env.SLUICE_TEST_STACK_FOLDER = stack.folder;
}
