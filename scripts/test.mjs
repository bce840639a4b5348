// npm test [-- arguments for jest]: installs what is missing, runs the tests, and ends with the line "N passed, N failed, N skipped".
// npm run test:secured sets SLUICE_TEST_SECURED=1: only the stories run, with stores that require TLS and logins.
import { explain } from './shell/explained-error.mjs';
import { ofStories, runJest, stopJestOnSignals } from './stories/run-jest.mjs';
import { ensureDependencies } from './setup/setup.mjs';

stopJestOnSignals();

const USAGE = `Usage: npm test [-- arguments for jest]
       npm run test:secured [-- arguments for jest]

npm test runs all tests, and test:secured the stories of test/ with a Kafka and a PostgreSQL that require TLS and logins.

npm test -- webhooks                        runs the files whose path matches
npm test -- webhooks --selectProjects unit  of the projects unit, integration and e2e, runs one
npm run test:secured -- test/page-walk      runs one story`;

try {
  await runTests(process.argv.slice(2));
} catch (error) {
  console.error(explain(error));
  process.exitCode = 1;
}

/** @param {string[]} args */
async function runTests(args) {
  if (args.includes('--help')) return console.log(USAGE);
  await ensureDependencies({ say: console.error });
  const { code, summary } = await runJest(process.env.SLUICE_TEST_SECURED === '1' ? ofStories(args) : args);
  console.log(summary);
  process.exitCode = code;
}
