import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { node24 } from '../setup/node24.mjs';
import { inRoot, ROOT } from '../shell/paths.mjs';
import { testSeed } from './test-seed.mjs';

// The time for jest to exit after it has written its results: a test with an open handle would keep it running forever.
const LEAVE_MS = 15_000;

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();

/** @param {NodeJS.Signals} signal */
export const signalJest = (signal) => running.forEach((child) => child.kill(signal));

/** A signal to this process stops jest; Ctrl-C in a terminal reaches jest directly. While jest does not run, the signal ends this process. */
export function stopJestOnSignals() {
  for (const signal of /** @type {const} */ (['SIGTERM', 'SIGHUP', 'SIGINT']))
    process.once(signal, () => {
      if (running.size === 0) process.exit(128 + constants.signals[signal]);
      if (signal !== 'SIGINT' || !process.stdin.isTTY) signalJest(signal);
    });
}

/**
 * Runs jest, which writes to standard error.
 *
 * @param {string[]} args
 * @param {Record<string, string>} [env]
 * @returns {Promise<{ code: number, summary: string }>} the exit code, and the text to print at the end: why tests were skipped, which have
 *   failed, with the seed, and as the last line `N passed, N failed, N skipped`
 */
export async function runJest(args, env = {}) {
  const seed = testSeed(env.SLUICE_SEED ?? process.env.SLUICE_SEED);
  const results = join(tmpdir(), `sluice-test-results-${process.pid}.json`);
  const child = spawn(
    node24(),
    [inRoot('node_modules', 'jest', 'bin', 'jest.js'), ...args, '--json', `--outputFile=${results}`],
    // With --json, jest prints its results a second time, on standard output.
    { cwd: ROOT, stdio: ['inherit', 'ignore', 'inherit'], env: { ...jestEnvironment(), ...env } },
  );
  running.add(child);

  const watch = setInterval(() => {
    if (!existsSync(results)) return;
    clearInterval(watch);
    setTimeout(() => {
      console.error('Jest did not exit after its last test, because a test has an open handle. Killing it.');
      child.kill('SIGKILL');
    }, LEAVE_MS).unref();
  }, 500).unref();

  const code = await new Promise((resolve) => child.on('exit', resolve));
  running.delete(child);
  const summary = readSummary(results);
  rmSync(results, { force: true });
  return {
    code: summary.success && (code === 0 || code === null) ? 0 : (code ?? 1) || 1,
    summary: [
      ...[...summary.reasons].map(([reason, count]) => `Skipped ${count}: ${reason}`),
      ...summary.failures.map((failure) => `Failed: ${failure}`),
      ...(summary.failed > 0 ? [`The randomised tests used SLUICE_SEED=${seed}`] : []),
      `${summary.passed} passed, ${summary.failed} failed, ${summary.skipped} skipped`,
    ].join('\n'),
  };
}

/**
 * Runs the stories of test/ against a running instance.
 *
 * @param {object} target see test/support/target.ts
 * @param {string[]} args
 */
export const runStories = (target, args) => runJest(ofStories(args), { SLUICE_E2E_TARGET: JSON.stringify(target) });

/**
 * Arguments for jest that restrict it to the stories. The option comes last, because it takes all arguments after it as names of projects.
 *
 * @param {string[]} args
 */
export const ofStories = (args) => [...args, '--selectProjects', 'e2e'];

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
      // A file that cannot be loaded counts as one failure.
      failed: results.numFailedTests + results.numRuntimeErrorTestSuites,
      skipped: results.numPendingTests + results.numTodoTests,
      reasons: skipReasons(results),
      failures: failures(results),
      success: results.success,
    };
  } catch {
    // Jest has died.
    return { passed: 0, failed: 1, skipped: 0, reasons: new Map(), failures: ['jest has died'], success: false };
  }
}

/**
 * Each failed test, with the beginning of its message: a log of CI may show only its end.
 *
 * @param {{ testResults: { name: string, message: string, assertionResults: { status: string, fullName: string, failureMessages: string[] }[] }[] }} results
 * @returns {string[]}
 */
function failures({ testResults }) {
  return testResults.flatMap(({ name, message, assertionResults }) => {
    const file = relative(ROOT, name);
    const failed = assertionResults.filter(({ status }) => status === 'failed');
    if (assertionResults.length === 0 && message !== '') return [`${file}\n${beginning(message)}`];
    return failed.map(({ fullName, failureMessages }) => `${file}: ${fullName}\n${beginning(failureMessages.join('\n'))}`);
  });
}

const FAILURE_LINES = 12;

/** @param {string} message */
function beginning(message) {
  const lines = stripVTControlCharacters(message).split('\n').slice(0, FAILURE_LINES);
  return lines.map((line) => `  ${line}`).join('\n');
}

/**
 * Why tests were skipped: `needing` in `test/support/target.ts` adds the reason to their names.
 *
 * @param {{ testResults: { assertionResults: { status: string, fullName: string }[] }[] }} results
 * @returns {Map<string, number>} the number of tests for each reason
 */
function skipReasons({ testResults }) {
  const counts = new Map();
  for (const { status, fullName } of testResults.flatMap(({ assertionResults }) => assertionResults)) {
    const reason = status === 'pending' && /\[skipped: (.*?)\]/.exec(fullName)?.[1];
    if (reason) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return counts;
}
