// npm run --silent sluice -- <command>: the operator's commands, each implemented by the app that owns the data.
import './setup/check-platform.mjs';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { appEnvironment } from './processes/apps.mjs';
import { dataFolder, findRunning } from './launch/data-folder.mjs';
import { loadDotEnv } from './launch/dot-env.mjs';
import { explain, ExplainedError } from './shell/explained-error.mjs';
import { node24 } from './setup/node24.mjs';
import { inRoot } from './shell/paths.mjs';
import { dataFolderPath } from './launch/settings.mjs';
import { ensureBuild, ensureDependencies } from './setup/setup.mjs';

/**
 * The program of each command, and whether it uses the stores.
 * @type {Record<string, { program: string[], usesStores: boolean }>}
 */
const COMMANDS = {
  account: { program: ['dist', 'apps', 'gateway', 'src', 'cli.js'], usesStores: true },
  key: { program: ['dist', 'apps', 'gateway', 'src', 'cli.js'], usesStores: true },
  registry: { program: ['dist', 'apps', 'catalog', 'src', 'cli.js'], usesStores: true },
  component: { program: ['dist', 'apps', 'runtime', 'src', 'cli.js'], usesStores: false },
  migrate: { program: ['scripts', 'migrate.mjs'], usesStores: true },
  secrets: { program: ['scripts', 'rotate-secrets.mjs'], usesStores: true },
  kafka: { program: ['scripts', 'kafka-acls.mjs'], usesStores: false },
};

const USAGE = `Usage: npm run --silent sluice -- <command>

  account …     accounts
  key …         API keys
  registry …    the registry of components
  component …   validation of component files
  migrate       bring databases and topics to this version; npm start does this automatically
  secrets rotate
                encrypt all secrets under the first key of SLUICE_SECRETS_KEY
  kafka acls    print the Kafka permissions that each service needs

Add --help to a command for its options.`;

const args = process.argv.slice(2);
const isKnown = Object.hasOwn(COMMANDS, args[0] ?? '') && (args[0] !== 'secrets' || args[1] === 'rotate');
const command = isKnown ? COMMANDS[args[0] ?? ''] : undefined;
if (command === undefined) {
  console.error(args.length > 0 ? `Unknown command: ${args[0]}\n\n${USAGE}` : USAGE);
  process.exitCode = 2;
} else {
  try {
    process.exitCode = await runCommand(command);
  } catch (error) {
    console.error(explain(error));
    process.exitCode = 1;
  }
}

/**
 * @param {{ program: string[], usesStores: boolean }} command
 * @returns {Promise<number>} the exit code
 */
async function runCommand({ program, usesStores }) {
  loadDotEnv();
  // Standard output belongs to the command: a program may be reading it.
  await ensureDependencies({ say: console.error });
  await ensureBuild({ say: console.error });
  const file = inRoot(...program);
  if (!existsSync(file)) throw new ExplainedError(`"${args[0]}" is not part of this installation: ${file} is missing.`);
  const child = spawn(node24(), ['--enable-source-maps', file, ...args], {
    stdio: 'inherit',
    env: { ...appEnvironment(usesStores ? addresses() : {}), SLUICE_API_KEY: process.env.SLUICE_API_KEY },
  });
  // Ctrl-C reaches the command directly; this process only waits for it.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? (signal ? 1 : 0)));
  });
}

/** The variables of the stores to use: none if they are configured, otherwise those of the Sluice that is running here. */
function addresses() {
  if (process.env.DATABASE_URL || process.env.DATABASE_URL_FILE) return {};
  const running = findRunning(dataFolder(dataFolderPath(process.env)));
  if (!running) throw new ExplainedError('Sluice is not running: start it with npm start, or set DATABASE_URL.');
  return running;
}
