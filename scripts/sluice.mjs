// npm run --silent sluice -- <command>: an administrator's commands, each answered by the app that owns what it is about.
import './lib/check-platform.mjs';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { appEnvironment } from './lib/apps.mjs';
import { dataFolder, findRunning } from './lib/data-folder.mjs';
import { loadDotEnv } from './lib/dot-env.mjs';
import { explain, ExplainedError } from './lib/explained-error.mjs';
import { node24 } from './lib/node24.mjs';
import { inRoot } from './lib/paths.mjs';
import { dataFolderPath } from './lib/settings.mjs';
import { ensureBuild, ensureDependencies } from './lib/setup.mjs';

/** @type {Record<string, import('./lib/apps.mjs').App>} */
const OWNERS = { account: 'gateway', key: 'gateway', registry: 'catalog', component: 'runtime' };

const USAGE = `Usage: npm run --silent sluice -- <command>

  account …     accounts
  key …         API keys
  registry …    the registry of components
  component …   components from files

Each of them with --help says more.`;

const args = process.argv.slice(2);
const owner = Object.hasOwn(OWNERS, args[0] ?? '') ? OWNERS[args[0] ?? ''] : undefined;
if (owner === undefined) {
  console.error(USAGE);
  process.exitCode = 2;
} else {
  try {
    process.exitCode = await runCommand(owner);
  } catch (error) {
    console.error(explain(error));
    process.exitCode = 1;
  }
}

/**
 * @param {import('./lib/apps.mjs').App} app
 * @returns {Promise<number>} the exit code
 */
async function runCommand(app) {
  loadDotEnv();
  // Standard output belongs to the command: a program may be reading it.
  await ensureDependencies({ say: console.error });
  await ensureBuild({ say: console.error });
  const cli = inRoot('dist', 'apps', app, 'src', 'cli.js');
  if (!existsSync(cli)) throw new ExplainedError(`The app that owns "${args[0]}" is not part of this installation: ${cli} is missing.`);
  const child = spawn(node24(), ['--enable-source-maps', cli, ...args], {
    stdio: 'inherit',
    // A look at a component's file needs no system that runs.
    env: { ...appEnvironment(app === 'runtime' ? {} : addresses()), SLUICE_API_KEY: process.env.SLUICE_API_KEY },
  });
  // Ctrl-C reaches the command by itself; this only waits for it.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? (signal ? 1 : 0)));
  });
}

/** The database and the broker to work on: the ones that are given, or those of the Sluice that runs here. */
function addresses() {
  if (process.env.DATABASE_URL) return {};
  const running = findRunning(dataFolder(dataFolderPath(process.env)));
  if (!running) throw new ExplainedError('Sluice is not running here: start it with npm start, or set DATABASE_URL.');
  return { DATABASE_URL: running.database_url, KAFKA_BROKERS: running.kafka_brokers };
}
