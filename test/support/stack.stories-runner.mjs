import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import TestRunner from 'jest-runner';
import { startSharedSystem } from './stack.shared-system.mjs';
import { startStoresForWorkers } from './stack.worker-stores.mjs';

/** One more than there are cores: most stories wait for a time limit or a restart at some time. */
const WORKERS = 3;

/** One counts repeats, whose number depends on how fast the system commits; the other has a receiver of 40,000 deliveries, which must not time out. */
const ALONE = ['restarts-lose-nothing.e2e-spec.ts', 'flood-in-a-partition.e2e-spec.ts'];

const joins = ({ path }) => readFileSync(path, 'utf8').includes('joinSystem(');
const runsAlone = ({ path }) => ALONE.includes(basename(path));

/**
 * Runs the stories in three groups: first those that join a system, which share one; then those that start one each, at the same time as others, with
 * separate stores for each worker; last those that need the machine to themselves. All stories that use a running instance or
 * the secured stores run one after the other.
 */
export default class StoriesRunner extends TestRunner {
  constructor(globalConfig, context) {
    super({ ...globalConfig, maxWorkers: WORKERS }, context);
  }

  async runTests(tests, watcher, options) {
    const isLocal = !process.env.SLUICE_E2E_TARGET && process.env.SLUICE_TEST_SECURED !== '1';
    const run = (group, isSerial) => super.runTests(group, watcher, { ...options, serial: isSerial || options.serial });
    if (!isLocal) return run(tests, true);
    const alone = tests.filter(runsAlone);
    const joined = tests.filter(joins);
    const separate = tests.filter((test) => !alone.includes(test) && !joined.includes(test));
    if (joined.length > 0) await during(startSharedSystem, () => run(joined));
    const workers = options.serial ? 1 : Math.min(WORKERS, separate.length);
    if (separate.length > 0)
      await during(
        () => startStoresForWorkers(workers),
        () => run(separate),
      );
    if (alone.length > 0) await run(alone, true);
  }
}

/** start: returns a function that stops what it has started. */
async function during(start, work) {
  const stop = await start();
  try {
    await work();
  } finally {
    await stop();
  }
}
