#!/usr/bin/env node
// npx sluice <command>: the command line. Users' commands are in packages/cli; operators' commands are implemented by the app that owns the data.
import './setup/check-platform.mjs';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { appEnvironment } from './processes/apps.mjs';
import { dataFolder, findRunning, isOfAnotherUser, localInstance, usesDatabaseOf } from './launch/data-folder.mjs';
import { loadDotEnv } from './launch/dot-env.mjs';
import { explain, ExplainedError } from './shell/explained-error.mjs';
import { ensureCommandLine } from './setup/command-line.mjs';
import { node24 } from './setup/node24.mjs';
import { inRoot } from './shell/paths.mjs';
import { dataFolderPath, reachableHosts, readSettings } from './launch/settings.mjs';
import { commandOf } from './setup/bundles.mjs';
import { ensureBuild, ensureDependencies } from './setup/setup.mjs';

/**
 * The program of each operator's command, whether it uses the stores, its second word if it has only one, and the help of a program that has no arguments.
 * @type {Record<string, { program: string, usesStores: boolean, secondWord?: string, help?: string }>}
 */
const COMMANDS = {
  account: { program: commandOf('gateway-command'), usesStores: true },
  key: { program: commandOf('gateway-command'), usesStores: true },
  registry: { program: commandOf('catalog-command'), usesStores: true },
  component: { program: commandOf('runtime-command'), usesStores: false },
  migrate: {
    program: commandOf('migrate'),
    usesStores: true,
    help: 'Usage: npx sluice admin migrate\n\nBrings databases and topics to this version. It can be repeated; npm start does it automatically.',
  },
  secrets: {
    program: inRoot('scripts', 'rotate-secrets.mjs'),
    usesStores: true,
    secondWord: 'rotate',
    help: 'Usage: npx sluice admin secrets rotate\n\nEncrypts all secrets under the first key of SLUICE_SECRETS_KEY. It can be repeated, also while the services run.',
  },
  kafka: { program: inRoot('scripts', 'kafka-acls.mjs'), usesStores: false, secondWord: 'acls' },
  'dead-letters': { program: inRoot('scripts', 'dead-letters.mjs'), usesStores: true },
};

const USAGE = `Usage: npx sluice admin <command>

  account …     accounts
  key …         API keys
  registry …    the registry of components
  component …   check and run component files, preload packages
  migrate       bring databases and topics to this version; npm start does this automatically
  secrets rotate
                encrypt all secrets under the first key of SLUICE_SECRETS_KEY
  kafka acls    print the Kafka permissions that each service needs
  dead-letters  count and list the records that could not be handled

Add --help to a command for its options. The commands also work without "admin".`;

const [first, ...others] = process.argv.slice(2);
const isAdmin = first === 'admin';
const args = isAdmin ? others : process.argv.slice(2);
const named = Object.hasOwn(COMMANDS, args[0] ?? '') ? COMMANDS[args[0] ?? ''] : undefined;
const command = named?.secondWord === undefined || args[1] === named.secondWord ? named : undefined;
const wantsHelp = args.includes('--help') || args.includes('-h');
try {
  if (command?.help !== undefined && wantsHelp) console.log(command.help);
  else if (command !== undefined) process.exitCode = await runOperators(command);
  else if (!isAdmin) process.exitCode = await runUsers();
  else {
    const asked = args.length === 0 || ['help', '--help', '-h'].includes(args[0] ?? '');
    const unknown = named === undefined ? args[0] : `${args.slice(0, 2).join(' ')} (${args[0]} ${named.secondWord}?)`;
    console.error(asked ? USAGE : `Unknown command: ${unknown}\n\n${USAGE}`);
    process.exitCode = asked && args.length > 0 ? 0 : 2;
  }
} catch (error) {
  console.error(explain(error));
  process.exitCode = 1;
}

/** Runs the command line for users. Without a profile, it uses the Sluice that `npm start` runs here. */
async function runUsers() {
  const env = { ...process.env };
  loadDotEnv();
  await ensureDependencies({ say: console.error });
  const file = await ensureCommandLine({ say: console.error });
  return exitCode(['--disable-warning=ExperimentalWarning', file, ...args], {
    ...env,
    ...localInstance(dataFolder(dataFolderPath(process.env))),
    // with which doctor runs an operator's command
    SLUICE_LOCAL_LAUNCHER: fileURLToPath(import.meta.url),
  });
}

/**
 * @param {{ program: string, usesStores: boolean }} command
 * @returns {Promise<number>} the exit code
 */
async function runOperators({ program, usesStores }) {
  loadDotEnv();
  // Standard output belongs to the command: a program may be reading it.
  await ensureDependencies({ say: console.error });
  await ensureBuild({ say: console.error });
  if (!existsSync(program)) throw new ExplainedError(`"${args[0]}" is not part of this installation: ${program} is missing.`);
  return exitCode(['--enable-source-maps', program, ...args], {
    // a component in a file reaches what it will reach with npm start
    ...appEnvironment(usesStores ? addresses() : reachableHosts(readSettings(process.env))),
    SLUICE_API_KEY: process.env.SLUICE_API_KEY,
  });
}

/**
 * @param {string[]} nodeArguments
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<number>}
 */
function exitCode(nodeArguments, env) {
  const child = spawn(node24(), nodeArguments, { stdio: 'inherit', env });
  // Ctrl-C in a terminal reaches the command directly
  process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'));
  for (const signal of /** @type {const} */ (['SIGTERM', 'SIGHUP'])) process.on(signal, () => child.kill(signal));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? (signal ? 128 + constants.signals[signal] : 0)));
  });
}

/**
 * The variables of the stores to use: those of the Sluice that is running here, unless others are configured. An instance with an existing database may have
 * the embedded broker, whose address and login only it knows.
 */
function addresses() {
  const folder = dataFolder(dataFolderPath(process.env));
  const running = findRunning(folder);
  if (process.env.DATABASE_URL || process.env.DATABASE_URL_FILE) return running && usesDatabaseOf(running, process.env) ? running : {};
  // help reads them, but connects to nothing
  if (!running && wantsHelp) return { DATABASE_URL: 'postgres://localhost/postgres', KAFKA_BROKERS: 'localhost:9092' };
  if (isOfAnotherUser(folder))
    throw new ExplainedError(`Sluice is running on ${folder.dir} as another user: run this as that user, or set DATABASE_URL.`);
  if (!running) throw new ExplainedError('Sluice is not running: start it with npm start, or set DATABASE_URL.');
  return running;
}
