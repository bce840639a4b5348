// npm test [-- arguments for jest]: installs what is missing, runs the tests, and ends with the line "N passed, N failed, N skipped".
import { explain } from './shell/explained-error.mjs';
import { runJest, signalJest } from './stories/run-jest.mjs';
import { ensureDependencies } from './setup/setup.mjs';

// A signal to this process stops jest; Ctrl-C in a terminal reaches jest directly.
for (const signal of /** @type {const} */ (['SIGTERM', 'SIGHUP'])) process.once(signal, () => signalJest(signal));
process.once('SIGINT', () => {});

try {
  await ensureDependencies({ say: console.error });
  const { code, summary } = await runJest(process.argv.slice(2));
  console.log(summary);
  process.exitCode = code;
} catch (error) {
  console.error(explain(error));
  process.exitCode = 1;
}
