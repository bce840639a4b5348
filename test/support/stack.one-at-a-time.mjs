import { readFileSync } from 'node:fs';
import TestRunner from 'jest-runner';
import { startSharedSystem } from './stack.shared-system.mjs';

const joins = ({ path }) => readFileSync(path, 'utf8').includes('joinSystem(');

/**
 * Runs its test files one after the other, regardless of maxWorkers. Those that join a system come first and share one, which stops before the
 * others start theirs: two are too much for one machine.
 */
export default class OneAtATimeRunner extends TestRunner {
  isSerial = true;

  async runTests(tests, watcher, options) {
    const isLocal = !process.env.SLUICE_E2E_TARGET && process.env.SLUICE_TEST_SECURED !== '1';
    const sharing = isLocal ? tests.filter(joins) : [];
    if (sharing.length > 0) {
      const stop = await startSharedSystem();
      try {
        await super.runTests(sharing, watcher, options);
      } finally {
        await stop();
      }
    }
    const others = tests.filter((test) => !sharing.includes(test));
    if (others.length > 0) await super.runTests(others, watcher, options);
  }
}
