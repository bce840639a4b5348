import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { appEnvironment, superviseApps } from '../../scripts/lib/apps.mjs';
import { node24 } from '../../scripts/lib/node24.mjs';
import { inRoot } from '../../scripts/lib/paths.mjs';
import { freePort } from '../../scripts/lib/ports.mjs';
import { Api } from './api.js';

const execute = promisify(execFile);

/** The five apps as processes, on the broker and the database of this run of the tests. */
export interface System {
  apiUrl: string;
  endpointsUrl: string;
  brokers: string;
  apps: ReturnType<typeof superviseApps>;
  /** What the apps have printed, for a test that failed. */
  log: string[];
  /** A client with a new account. */
  account(email?: string): Promise<Api>;
  /** Runs the operator's command of an app; answers what it printed as JSON. */
  command(app: string, ...args: string[]): Promise<unknown>;
  stop(): Promise<void>;
}

export async function startSystem(variables: Record<string, string> = {}): Promise<System> {
  const databaseUrl = process.env.SLUICE_TEST_DATABASE_URL;
  const brokers = process.env.SLUICE_TEST_KAFKA_BROKERS;
  if (!databaseUrl || !brokers) throw new Error('the test stack is not running: run the tests by npm test');
  const [httpPort, endpointsPort] = [await freePort(), await freePort()];
  const env = {
    DATABASE_URL: databaseUrl,
    KAFKA_BROKERS: brokers,
    SLUICE_HTTP_PORT: String(httpPort),
    SLUICE_ENDPOINTS_PORT: String(endpointsPort),
    SLUICE_ALLOW_PRIVATE_HOSTS: '127.0.0.0/8,::1,localhost',
    ...variables,
  };
  const log: string[] = [];
  const print = (app: string, line: string) => {
    log.push(`${app} ${line}`);
    if (process.env.SLUICE_TEST_LOG) console.log(app, line);
  };
  const run = async (file: string, args: string[]) =>
    (await execute(node24(), [inRoot(file), ...args], { env: appEnvironment(env) })).stdout;
  await run('scripts/migrate.mjs', []);
  const apps = superviseApps({ env, log: print, say: (line: string) => print('sluice', line) });
  try {
    await apps.startAll();
  } catch (error) {
    await apps.stopAll();
    throw new Error(`the system did not start:\n${log.filter((line) => /"level":"(error|fatal)"/.test(line)).join('\n')}`, {
      cause: error,
    });
  }
  const apiUrl = `http://127.0.0.1:${httpPort}/v1`;
  const command = async (app: string, ...args: string[]): Promise<unknown> =>
    JSON.parse(await run(`dist/apps/${app}/src/cli.js`, [...args, '--json']));
  return {
    apiUrl,
    endpointsUrl: `http://localhost:${endpointsPort}`,
    brokers,
    apps,
    log,
    command,
    account: async (email = 'someone@example.com') =>
      new Api(apiUrl, (await command('gateway', 'account', 'create', '--email', email)) as Api['account']),
    stop: () => apps.stopAll(),
  };
}
