// npm test [-- arguments of jest]: sets up what is missing, runs the tests, and closes with the line "N passed, N failed, N skipped".
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { explain } from './lib/explained-error.mjs';
import { node24 } from './lib/node24.mjs';
import { inRoot, ROOT } from './lib/paths.mjs';
import { ensureDependencies } from './lib/setup.mjs';

// Time for jest to leave once it has written its results: a test that left something open would keep it for ever.
const LEAVE_MS = 15_000;

try {
  await ensureDependencies({ say: console.error });
  process.exitCode = await runJest(process.argv.slice(2));
} catch (error) {
  console.error(explain(error));
  process.exitCode = 1;
}

/**
 * @param {string[]} args
 * @returns {Promise<number>} the exit code
 */
async function runJest(args) {
  const results = join(tmpdir(), `sluice-test-results-${process.pid}.json`);
  const child = spawn(
    node24(),
    [inRoot('node_modules', 'jest', 'bin', 'jest.js'), ...args, '--json', `--outputFile=${results}`],
    // With --json jest prints its results a second time, on its standard output.
    { cwd: ROOT, stdio: ['inherit', 'ignore', 'inherit'], env: jestEnvironment() },
  );
  // Whoever stops us stops jest; Ctrl-C in a terminal reaches it by itself.
  for (const signal of /** @type {const} */ (['SIGTERM', 'SIGHUP'])) process.once(signal, () => child.kill(signal));
  process.once('SIGINT', () => {});

  const watch = setInterval(() => {
    if (!existsSync(results)) return;
    clearInterval(watch);
    setTimeout(() => {
      console.error('Jest has not left after its last test: a test has left something open. Ending it.');
      child.kill('SIGKILL');
    }, LEAVE_MS).unref();
  }, 500).unref();

  const code = await new Promise((resolve) => child.on('exit', resolve));
  const summary = readSummary(results);
  rmSync(results, { force: true });
  console.log(`${summary.passed} passed, ${summary.failed} failed, ${summary.skipped} skipped`);
  return summary.success && (code === 0 || code === null) ? 0 : (code ?? 1) || 1;
}

function jestEnvironment() {
  return {
    ...process.env,
    NODE_OPTIONS: '--experimental-vm-modules --disable-warning=ExperimentalWarning --disable-warning=TimeoutNegativeWarning',
    KAFKAJS_NO_PARTITIONER_WARNING: '1',
  };
}

/** @param {string} file */
function readSummary(file) {
  try {
    const results = JSON.parse(readFileSync(file, 'utf8'));
    return {
      passed: results.numPassedTests,
      // A file that could not even be loaded counts as one failure.
      failed: results.numFailedTests + results.numRuntimeErrorTestSuites,
      skipped: results.numPendingTests + results.numTodoTests,
      success: results.success,
    };
  } catch {
    // Jest has died.
    return { passed: 0, failed: 1, skipped: 0, success: false };
  }
}
