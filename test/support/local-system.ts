import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type App, APPS, appEnvironment, startApp, superviseApps } from '../../scripts/processes/apps.mjs';
import { startBroker } from '../../scripts/stores/broker.mjs';
import { node24 } from '../../scripts/setup/node24.mjs';
import { inRoot } from '../../scripts/shell/paths.mjs';
import { freePort } from '../../scripts/shell/ports.mjs';
import { SECRETS_KEY } from './secrets-key.mjs';
import { Api, newEmail } from './api.js';
import { logins } from './outside-kafka.js';
import { startSecuredStores } from './secured-stores.js';
import { uncontrolled } from './running-system.js';
import type { Apps, System, SystemOptions } from './system.js';
import { isSecured } from './target.js';

const execute = promisify(execFile);

/** As in docker-compose.yml and the Kubernetes manifests: longer than SLUICE_SHUTDOWN_TIMEOUT. */
const GRACE_MS = 60_000;

/** The app that implements a command of the operator's CLI. */
const OWNERS: Record<string, App> = { account: 'gateway', key: 'gateway', registry: 'catalog', component: 'runtime' };

/** The five apps as processes, with the broker and the database server of this test run. */
export async function startLocalSystem({ variables = {}, killsBroker = false }: SystemOptions): Promise<System> {
  const databaseUrl = process.env.SLUICE_TEST_DATABASE_URL;
  const sharedBrokers = process.env.SLUICE_TEST_KAFKA_BROKERS;
  if (!databaseUrl || !sharedBrokers) throw new Error('the test stack is not running: run the tests by npm test');
  const broker = killsBroker ? await OwnBroker.start() : undefined;
  const secured = isSecured ? await startSecuredStores() : undefined;
  const brokers = secured?.brokers ?? broker?.brokers ?? sharedBrokers;
  if (secured) logins.set(brokers, secured.client);
  const login = (user: App | 'migrate'): Record<string, string> => secured?.environment(user) ?? {};
  const env = {
    DATABASE_URL: databaseUrl,
    KAFKA_BROKERS: brokers,
    SLUICE_SECRETS_KEY: SECRETS_KEY,
    SLUICE_HTTP_PORT: String(await freePort()),
    SLUICE_ENDPOINTS_PORT: String(await freePort()),
    SLUICE_ALLOW_PRIVATE_HOSTS: '127.0.0.0/8,::1,localhost',
    // a story that installs packages brings its registry
    SLUICE_PACKAGES: 'none',
    // the values that npm start shortens
    SLUICE_SHUTDOWN_TIMEOUT: '45s',
    ...Object.assign({}, ...Object.values(variables)),
  };
  const run = async (user: App | 'migrate', file: string, args: string[]) => runScript(file, args, { ...env, ...login(user) });
  const apps = new LocalApps(env, login);
  const stop = async () => {
    await apps.stopAll();
    await Promise.all([broker?.stop(), secured?.stop()]);
  };
  try {
    await run('migrate', 'dist/bundles/migrate.js', []);
    await apps.startAll();
  } catch (error) {
    await stop();
    throw new Error(`the system did not start:\n${apps.complaints()}`, { cause: error });
  }
  const sluice = commands((owner) => ({ ...env, ...login(owner) }));
  const [apiUrl, endpointsUrl] = [apps.apiUrls()[0]!, `http://localhost:${env.SLUICE_ENDPOINTS_PORT}`];
  return {
    apiUrl,
    endpointsUrl,
    brokers,
    kafkaVariables: secured?.kafkaLogin('operator') ?? { KAFKA_BROKERS: brokers },
    apps,
    broker: {
      kill: async () => broker?.kill(),
      start: async () => broker?.restart(),
      loseData: async () => broker?.loseData(),
    },
    sluice,
    account: async (email = newEmail()) => new Api(apiUrl, (await sluice('account', 'create', '--email', email)) as Api['account']),
    stop,
  };
}

/** The system that `stack.stories-runner.mjs` has started. Stopping it only removes the resources of the story. */
export async function joinSharedSystem(): Promise<System> {
  if (!process.env.SLUICE_TEST_SHARED_SYSTEM) throw new Error('the shared system is not running: run the tests by npm test');
  const env = JSON.parse(process.env.SLUICE_TEST_SHARED_SYSTEM) as Record<string, string>;
  const [apiUrl, endpointsUrl] = [`http://127.0.0.1:${env.SLUICE_HTTP_PORT}/v1`, `http://localhost:${env.SLUICE_ENDPOINTS_PORT}`];
  const { broker, ...apps } = uncontrolled({ apiUrl, endpointsUrl });
  const sluice = commands(() => env);
  const clients: Api[] = [];
  return {
    ...{ apiUrl, endpointsUrl, brokers: env.KAFKA_BROKERS!, kafkaVariables: { KAFKA_BROKERS: env.KAFKA_BROKERS! }, apps, broker, sluice },
    account: async (email = newEmail()) => {
      clients.push(new Api(apiUrl, (await sluice('account', 'create', '--email', email)) as Api['account']));
      return clients.at(-1)!;
    },
    stop: async () => void (await Promise.all(clients.map((api) => api.removeAll()))),
  };
}

const runScript = async (file: string, args: string[], env: Record<string, string | undefined>): Promise<string> =>
  (await execute(node24(), [inRoot(file), ...args], { env: appEnvironment(env) })).stdout;

/** The operator's CLI, with the environment of the app that owns a command. */
const commands =
  (envOf: (owner: App) => Record<string, string>) =>
  async (...args: string[]): Promise<unknown> => {
    const owner = OWNERS[args[0] ?? ''];
    if (!owner) throw new Error(`no app owns the command "${args[0]}"`);
    return JSON.parse(await runScript(`dist/bundles/${owner}-command.js`, [...args, '--json'], envOf(owner)));
  };

type Replica = ReturnType<typeof startApp> & { env: Record<string, string> };

class LocalApps implements Apps {
  private readonly first: ReturnType<typeof superviseApps>;
  /** Additional replicas, each with its own ports. */
  private readonly more = new Map<App, Replica[]>();
  private readonly envs: Promise<Record<string, string>>[] = [];
  private readonly printed: { app: string; line: string }[] = [];
  /** Of all systems of this story. */
  private readonly kept = (globalThis as { outputOfApps?: { app: string; line: string }[] }).outputOfApps;

  constructor(
    private readonly env: Record<string, string>,
    private readonly login: (app: App) => Record<string, string>,
  ) {
    this.first = superviseApps({
      env,
      envOf: login,
      graceMs: GRACE_MS,
      log: this.print,
      say: (line: string) => this.print('sluice', line),
    });
  }

  private readonly print = (app: string, line: string): void => {
    this.printed.push({ app, line });
    this.kept?.push({ app, line });
    if (process.env.SLUICE_TEST_LOG) console.log(app, line);
  };

  startAll = (): Promise<void> => this.first.startAll();

  async stopAll(): Promise<void> {
    await Promise.all([this.first.stopAll(), ...[...this.more.values()].flat().map((replica) => replica.stop())]);
  }

  complaints(): string {
    return this.printed
      .filter(({ line }) => /"level":"(error|fatal)"/.test(line))
      .map(({ app, line }) => `${app} ${line}`)
      .join('\n');
  }

  kill = (app: App): Promise<void> => this.first.kill(app);
  pause = (app: App): Promise<void> => this.first.kill(app, 'SIGSTOP');
  resume = (app: App): Promise<void> => this.first.kill(app, 'SIGCONT');
  whenReady = (app: App): Promise<void> => this.first.whenReady(app);

  async stop(app: App): Promise<void> {
    await Promise.all([this.first.stop(app), ...this.replicas(app).map((replica) => replica.stop())]);
  }

  async start(app: App): Promise<void> {
    await this.first.start(app);
    const envs = this.replicas(app).map(({ env }) => env);
    this.more.set(app, await Promise.all(envs.map((env) => this.startReplica(app, env))));
  }

  async restart(app: App): Promise<void> {
    await this.first.stop(app);
    await this.first.start(app);
    for (const [n, replica] of this.replicas(app).entries()) {
      await replica.stop();
      this.replicas(app)[n] = await this.startReplica(app, replica.env);
    }
  }

  async scale(replicas: Partial<Record<App, number>>): Promise<void> {
    await Promise.all(
      APPS.map(async (app) => {
        const wanted = (replicas[app] ?? this.replicas(app).length + 1) - 1;
        const surplus = this.replicas(app).splice(wanted);
        await Promise.all(surplus.map((replica) => replica.stop()));
        const missing = Array.from({ length: wanted - this.replicas(app).length }, (_, n) => this.replicas(app).length + n);
        this.replicas(app).push(...(await Promise.all(missing.map(async (n) => this.startReplica(app, await this.envOf(n))))));
      }),
    );
  }

  apiUrls = (): string[] => this.ports('gateway', 'SLUICE_HTTP_PORT').map((port) => `http://127.0.0.1:${port}/v1`);
  endpointsUrls = (): string[] => this.ports('runtime', 'SLUICE_ENDPOINTS_PORT').map((port) => `http://127.0.0.1:${port}`);
  logs = async (app: App): Promise<string[]> => this.printed.filter((each) => each.app === app).map(({ line }) => line);

  private ports(app: App, variable: string): string[] {
    return [this.env, ...this.replicas(app).map(({ env }) => env)].map((env) => env[variable]!);
  }

  private replicas(app: App): Replica[] {
    if (!this.more.has(app)) this.more.set(app, []);
    return this.more.get(app)!;
  }

  /** The ports of the additional replicas with this number, which are kept when they are restarted. */
  private envOf(n: number): Promise<Record<string, string>> {
    this.envs[n] ??= Promise.all([freePort(), freePort()]).then(([http, endpoints]) => ({
      ...this.env,
      SLUICE_HTTP_PORT: String(http),
      SLUICE_ENDPOINTS_PORT: String(endpoints),
      SLUICE_ENDPOINTS_URL: `http://localhost:${this.env.SLUICE_ENDPOINTS_PORT}`,
    }));
    return this.envs[n];
  }

  private async startReplica(app: App, env: Record<string, string>): Promise<Replica> {
    const replica = startApp({ app, env: { ...env, ...this.login(app) }, graceMs: GRACE_MS, log: this.print });
    if (!(await replica.ready)) throw new Error(`a second ${app} did not start:\n${this.complaints()}`);
    return { ...replica, env };
  }
}

/** A broker for one story, which kills it. */
class OwnBroker {
  private constructor(
    private broker: Awaited<ReturnType<typeof startBroker>>,
    private readonly dir: string,
    private readonly port: number,
  ) {}

  static async start(): Promise<OwnBroker> {
    const [dir, port] = [await mkdtemp(join(tmpdir(), 'sluice-test-')), await freePort()];
    return new OwnBroker(await startBroker({ dir, port }), dir, port);
  }

  get brokers(): string {
    return this.broker.brokers;
  }

  kill = (): Promise<void> => this.broker.kill();

  async restart(): Promise<void> {
    this.broker = await startBroker({ dir: this.dir, port: this.port });
  }

  loseData = (): Promise<void> => rm(join(this.dir, 'data'), { recursive: true, force: true });

  async stop(): Promise<void> {
    await this.broker.stop();
    await rm(this.dir, { recursive: true, force: true });
  }
}
