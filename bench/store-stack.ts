import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** What of a started process the benches and soaks use. */
export interface StartedProcess {
  pid: number;
  exited: Promise<unknown>;
  /** At once. */
  kill(): Promise<void>;
  /** In good order. */
  stop(): Promise<void>;
}
interface Scripts {
  startBroker(options: object): Promise<StartedProcess & { brokers: string }>;
  startPostgres(options: object): Promise<StartedProcess & { url: string }>;
  startApp(options: object): StartedProcess & { ready: Promise<boolean> };
  startKeeper(options: object): { dismiss(): void };
  freePort(): Promise<number>;
  ensureBrokerJars(options: object): Promise<void>;
}

/** A broker, a database server and the event store, in a folder of their own; as durable as they are in production. */
export interface StoreStack {
  brokers: string;
  databaseUrl: string;
  broker: StartedProcess;
  postgres: StartedProcess;
  /** Starts what has died, on the same port and folder. */
  startBroker(): Promise<void>;
  startPostgres(): Promise<void>;
  /** Resolves when it's ready; null when it ended before. */
  startStore(): Promise<StartedProcess | null>;
  stop(): Promise<void>;
}

/** The launcher's own scripts aren't compiled; npm runs its scripts in the root of the repository. */
const load = async (file: string): Promise<Partial<Scripts>> =>
  (await import(pathToFileURL(join(process.cwd(), 'scripts/lib', file)).href)) as Partial<Scripts>;

export async function startStoreStack({ partitions = 4, log = (_line: string): void => {} } = {}): Promise<StoreStack> {
  const files = ['broker.mjs', 'postgres.mjs', 'apps.mjs', 'keeper.mjs', 'ports.mjs', 'setup.mjs'];
  const scripts = Object.assign({}, ...(await Promise.all(files.map(load)))) as Scripts;
  await scripts.ensureBrokerJars({ say: log });
  const folder = await mkdtemp(join(tmpdir(), 'sluice-store-'));
  // PostgreSQL may have to run as another user, who must get through to its folder
  await chmod(folder, 0o711);
  const keeper = scripts.startKeeper({ removeFolder: folder });
  const [brokerPort, controllerPort, postgresPort] = await Promise.all([scripts.freePort(), scripts.freePort(), scripts.freePort()]);
  const broker = () => scripts.startBroker({ dir: join(folder, 'broker'), port: brokerPort, controllerPort, keeper });
  const postgres = () => scripts.startPostgres({ dir: join(folder, 'postgres'), port: postgresPort, keeper });
  const [firstBroker, firstPostgres] = await Promise.all([broker(), postgres()]);
  const apps: StartedProcess[] = [];
  const env = { KAFKA_BROKERS: firstBroker.brokers, DATABASE_URL: firstPostgres.url, SLUICE_LOG_LEVEL: 'warn' };
  const stack: StoreStack = {
    brokers: firstBroker.brokers,
    databaseUrl: firstPostgres.url,
    broker: firstBroker,
    postgres: firstPostgres,
    startBroker: async () => void (stack.broker = await broker()),
    startPostgres: async () => void (stack.postgres = await postgres()),
    startStore: async () => {
      const app = scripts.startApp({ app: 'event-store', env, log: (_app: string, line: string) => log(line), keeper });
      apps.push(app);
      return (await app.ready) ? app : null;
    },
    stop: async () => {
      await Promise.all(apps.map((app) => app.stop()));
      await Promise.all([stack.broker.stop(), stack.postgres.stop()]);
      await rm(folder, { recursive: true, force: true });
      keeper.dismiss();
    },
  };
  const migrated = spawnSync(process.execPath, ['scripts/migrate.mjs'], {
    env: { ...process.env, ...env, SLUICE_PARTITIONS: String(partitions) },
    encoding: 'utf8',
  });
  if (migrated.status !== 0) {
    await stack.stop();
    throw new Error(`the migration failed:\n${migrated.stdout}${migrated.stderr}`);
  }
  return stack;
}

const TICKS_PER_SECOND = 100;

/** CPU seconds that a process has used so far, or all processes of a name have; null where the system doesn't tell. */
export function cpuSeconds(process: number | string): number | null {
  try {
    const pids = typeof process === 'number' ? [String(process)] : readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
    let ticks = 0;
    for (const pid of pids) {
      const stat = readStat(pid);
      if (stat && (typeof process === 'number' || stat.name === process)) ticks += stat.ticks;
    }
    return ticks / TICKS_PER_SECOND;
  } catch {
    return null;
  }
}

function readStat(pid: string): { name: string; ticks: number } | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { name: text.slice(text.indexOf('(') + 1, text.lastIndexOf(')')), ticks: Number(fields[11]) + Number(fields[12]) };
  } catch {
    // it has ended meanwhile
    return null;
  }
}
