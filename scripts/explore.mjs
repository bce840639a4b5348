// npm run explore [-- --minutes N] [pattern…]: runs the randomised tests with fresh seeds until the time is over or one fails.
import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runScript } from './shell/command.mjs';
import { ExplainedError } from './shell/explained-error.mjs';
import { interruptible } from './stories/interruptible.mjs';
import { inRoot } from './shell/paths.mjs';
import { runJest } from './stories/run-jest.mjs';
import { ensureKafka, ensureDependencies } from './setup/setup.mjs';
import { startTestStack } from './stories/test-stack.mjs';

const USAGE = `Usage: npm run explore -- [--minutes N] [pattern…]

Runs the randomised tests again and again, each time with a fresh seed, until N minutes have passed (default: 10) or a test fails. The last
round finishes. A pattern selects test files by their path, like npm test -- PATTERN. The exit code is 1 after a failure, and the command that
repeats it is printed.`;

/** The contents by which a randomised test file is recognised. */
const RANDOMISED = /from 'fast-check'|process\.env\.SLUICE_SEED/;

await runScript({ usage: USAGE, options: { minutes: { type: 'string', default: '10' } } }, explore);

/**
 * @param {{ minutes: string }} options
 * @param {string[]} patterns
 */
async function explore(options, patterns) {
  const minutes = Number(options.minutes);
  if (!(minutes > 0)) throw new ExplainedError(`--minutes must be a number above 0, not "${options.minutes}".`);
  const files = randomisedFiles(patterns);
  if (files.length === 0) throw new ExplainedError(`No randomised test file matches ${patterns.join(' ')}.`);
  await ensureDependencies({ say: console.error });
  // One broker and one database server for all rounds.
  let stack = { databaseUrl: '', brokers: '', stop: async () => {} };
  const needsStores = files.some((file) => !file.endsWith('.spec.ts'));
  return interruptible(
    async () => {
      if (needsStores) {
        await ensureKafka({ say: console.error });
        stack = await startTestStack();
      }
      const stores = needsStores
        ? { SLUICE_TEST_DATABASE_URL: stack.databaseUrl, SLUICE_TEST_KAFKA_BROKERS: stack.brokers }
        : /** @type {Record<string, string>} */ ({});
      const end = Date.now() + minutes * 60_000;
      let rounds = 0;
      do {
        const seed = String(randomInt(2 ** 31));
        console.log(`SLUICE_SEED=${seed}`);
        const { code, summary } = await runJest(['--runTestsByPath', ...files], { ...stores, SLUICE_SEED: seed });
        if (code !== 0) {
          console.log(`${summary}\nFailed. Repeat it with: SLUICE_SEED=${seed} npm test -- ${patterns.join(' ') || files.join(' ')}`);
          return 1;
        }
        rounds++;
      } while (Date.now() < end);
      console.log(`${rounds} rounds of ${files.length} files passed.`);
      return 0;
    },
    () => stack.stop(),
  );
}

/**
 * @param {string[]} patterns regular expressions, of which a file's path must match one
 * @returns {string[]} paths from the root
 */
function randomisedFiles(patterns) {
  return ['apps', 'libs', 'test']
    .flatMap((folder) => readdirSync(inRoot(folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)))
    .filter((file) => /spec\.ts$/.test(file) && (patterns.length === 0 || patterns.some((pattern) => new RegExp(pattern).test(file))))
    .filter((file) => RANDOMISED.test(readFileSync(inRoot(file), 'utf8')))
    .sort();
}
