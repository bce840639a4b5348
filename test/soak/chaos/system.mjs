import { execFileSync } from 'node:child_process';
import { open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import pg from 'pg';
import { runOurs, startOwnStores } from '../../../scripts/temporary/own-stores.mjs';
import { superviseApps } from '../../../scripts/processes/apps.mjs';
import { freePort } from '../../../scripts/shell/ports.mjs';
import { newSecretsKey } from '../../../scripts/shell/secrets-key.mjs';
import { brokerData } from '../../../scripts/stores/broker.mjs';
import { postgresData } from '../../../scripts/stores/postgres.mjs';
import { RETRY_SCHEDULE } from '../delivery/stack.mjs';

/** @typedef {import('../../../scripts/processes/apps.mjs').App} App */

/** The names of log lines that report a loss, a repetition or a restore. */
const REPORTS = ['log.replaced', 'log.records-missed', 'database.restored', 'lane.rewound', 'topics.recreated', 'log.gap-reported'];

/**
 * A whole system that can be damaged: stores and apps that are restarted when they die, on free ports, in a temporary folder.
 */
export class System {
  /** What the apps have reported: the fields of the log lines. @type {{ app: App, msg: string, at: number, missed?: number, group?: string }[]} */
  reports = [];
  /** Other lines at level error and fatal. @type {Map<string, number>} */
  complaints = new Map();
  /** The ids of events whose first attempt failed, or may have died with its process. @type {Set<string>} */
  failedAttempts = new Set();

  /**
   * @param {object} options
   * @param {number} [options.replicas] of each app
   * @param {{ broker: number, postgres: number }} [options.disks] sizes in MB
   * @param {(line: string) => void} [options.say]
   */
  static async start({ replicas = 1, disks, say = () => {} } = {}) {
    const stores = await startOwnStores({ disks });
    const system = new System(stores, say);
    await runOurs(system.env, 'dist/bundles/migrate.js');
    for (let n = 0; n < replicas; n++) system.apps.push(await system.replica());
    await Promise.all(system.apps.map((apps) => apps.startAll()));
    const account = ['account', 'create', '--email', 'chaos@example.com', '--json'];
    system.apiKey = JSON.parse(await runOurs(system.env, 'dist/bundles/gateway-command.js', ...account)).api_key;
    return system;
  }

  /** @param {Awaited<ReturnType<typeof startOwnStores>>} stores @param {(line: string) => void} say */
  constructor(stores, say) {
    this.stores = stores;
    this.say = say;
    /** One per replica. @type {ReturnType<typeof superviseApps>[]} */
    this.apps = [];
    /** Of the REST API, one per replica. @type {string[]} */
    this.apiUrls = [];
    this.apiKey = '';
    this.brokers = stores.brokers;
    this.databaseUrl = stores.databaseUrl;
    this.kafka = new kafkajs.Kafka({
      clientId: 'chaos',
      brokers: [stores.brokers],
      logLevel: kafkajs.logLevel.NOTHING,
      retry: { retries: 30, maxRetryTime: 2000 },
    });
    this.env = {
      KAFKA_BROKERS: stores.brokers,
      DATABASE_URL: stores.databaseUrl,
      SLUICE_SECRETS_KEY: newSecretsKey(),
      SLUICE_DATA_DIR: stores.folder,
      SLUICE_ALLOW_PRIVATE_HOSTS: '127.0.0.0/8,::1,localhost',
      SLUICE_LOG_LEVEL: 'warn',
      SLUICE_RETRY_SCHEDULE: RETRY_SCHEDULE,
    };
  }

  async replica() {
    const [http, endpoints] = [await freePort(), await freePort()];
    this.apiUrls.push(`http://127.0.0.1:${http}/v1`);
    return superviseApps({
      env: { ...this.env, SLUICE_HTTP_PORT: String(http), SLUICE_ENDPOINTS_PORT: String(endpoints) },
      // its attempts are in its log
      envOf: (app) => (app === 'routing' ? { SLUICE_LOG_LEVEL: 'info' } : /** @type {Record<string, string>} */ ({})),
      log: (app, line) => this.read(app, line),
      say: (line) => this.say(line),
    });
  }

  /** @param {App} app @param {string} line */
  read(app, line) {
    if (line.includes('"delivery.attempted"')) {
      if (line.includes('"outcome":"delivered"')) return;
      const { event_id, attempt } = JSON.parse(line);
      if (attempt === 1) this.failedAttempts.add(event_id);
      return;
    }
    // later deliveries do not wait for it; if its process dies, it is repeated behind them
    if (line.includes('"delivery.parked-in-flight"')) return void this.failedAttempts.add(JSON.parse(line).event_id);
    if (process.env.CHAOS_LOG) console.log(app, line.slice(0, 1000));
    const name = REPORTS.find((report) => line.includes(`"${report}"`));
    if (name) this.reports.push({ app, ...JSON.parse(line), msg: name, at: Date.now() });
    else if (/"level":"(error|fatal)"/.test(line)) {
      const { msg, err, reason } = JSON.parse(line);
      const complaint = `${app} ${msg} ${reason ?? err?.message ?? ''}`.slice(0, 160);
      if (!this.complaints.has(complaint)) this.say(line.slice(0, 700));
      this.complaints.set(complaint, (this.complaints.get(complaint) ?? 0) + 1);
    } else if (!line.startsWith('{')) this.say(`${app} ${line.slice(0, 300)}`);
  }

  /** How often each report was logged. @returns {Record<string, number>} */
  reportCounts() {
    return count(this.reports.map(({ msg }) => msg));
  }

  /** Sends a signal to all processes of a store or to one replica of an app. @param {string} name @param {NodeJS.Signals} signal */
  signal(name, signal, replica = 0) {
    const pid =
      name === 'broker'
        ? this.stores.broker.pid
        : name === 'postgres'
          ? this.stores.postgres.pid
          : this.apps[replica]?.pid(/** @type {App} */ (name));
    if (pid === undefined) return;
    for (const each of [pid, ...(name === 'postgres' ? childrenOf(pid) : [])]) {
      try {
        process.kill(each, signal);
      } catch {
        // it has ended
      }
    }
  }

  /** @param {string} name */
  async ready(name, replica = 0) {
    if (name === 'broker') await this.stores.broker.whenReady();
    else if (name === 'postgres') await this.stores.postgres.whenReady();
    else await this.apps[replica]?.whenReady(/** @type {App} */ (name));
  }

  /** Kills a store or an app, and resolves when it runs again. @param {string} name */
  async kill(name, replica = 0) {
    if (name === 'broker') await this.stores.broker.kill();
    else if (name === 'postgres') await this.stores.postgres.kill();
    else await this.apps[replica]?.kill(/** @type {App} */ (name));
    await this.ready(name, replica);
  }

  /** @param {string} name @param {number} ms */
  async pause(name, ms, replica = 0) {
    this.signal(name, 'SIGSTOP', replica);
    await sleep(ms);
    this.signal(name, 'SIGCONT', replica);
  }

  /** @param {readonly App[]} names */
  async stopApps(names, signal = /** @type {NodeJS.Signals} */ ('SIGTERM')) {
    await Promise.all(this.apps.flatMap((apps) => names.map((name) => apps.stop(name, { signal }))));
  }

  /** @param {readonly App[]} names */
  async startApps(names) {
    await Promise.all(this.apps.flatMap((apps) => names.map((name) => apps.start(name))));
  }

  /** @template T @param {(admin: import('kafkajs').Admin) => Promise<T>} work */
  async withAdmin(work) {
    const admin = this.kafka.admin();
    try {
      await admin.connect();
      return await work(admin);
    } finally {
      await admin.disconnect().catch(() => {});
    }
  }

  /** @template T @param {(client: pg.Client) => Promise<T>} work */
  async withDatabase(work, name = 'postgres') {
    const client = new pg.Client({ connectionString: this.databaseUrl.replace(/\/[^/]*$/, `/${name}`) });
    client.on('error', () => {});
    await client.connect();
    try {
      return await work(client);
    } finally {
      await client.end().catch(() => {});
    }
  }

  /** How far routing has committed the topic `events`, by partition. */
  committed(group = 'routing.events') {
    return this.withAdmin(async (admin) => {
      const [found] = await admin.fetchOffsets({ groupId: group, topics: ['events'] });
      return new Map(found?.partitions.map(({ partition, offset }) => [partition, Math.max(0, Number(offset))]));
    });
  }

  /** A base backup of the running database server: all databases at one moment. Returns its folder. */
  async backUp() {
    const folder = join(this.stores.folder, `backup-${Date.now()}`);
    const data = postgresData(this.stores.folders.postgres);
    await this.withDatabase(async (client) => {
      await client.query("SELECT pg_backup_start('chaos', true)");
      execFileSync('cp', ['-a', data, folder]);
      const { rows } = await client.query('SELECT labelfile FROM pg_backup_stop(false)');
      await writeFile(join(folder, 'backup_label'), rows[0].labelfile);
    });
    // up to the end of the backup
    execFileSync('cp', ['-a', join(data, 'pg_wal'), folder]);
    await rm(join(folder, 'postmaster.pid'), { force: true });
    return folder;
  }

  /** Replaces the database server's data by a backup. @param {string} backup */
  async restore(backup) {
    const data = postgresData(this.stores.folders.postgres);
    await this.stores.postgres.stop({ signal: 'SIGKILL' });
    await rm(data, { recursive: true, force: true });
    execFileSync('cp', ['-a', backup, data]);
    await this.stores.postgres.start();
  }

  /** The broker loses its disk. */
  async loseLog() {
    await this.stores.broker.stop({ signal: 'SIGKILL' });
    await rm(brokerData(this.stores.folders.broker), { recursive: true, force: true });
    await this.stores.broker.start();
  }

  /**
   * Fills a store's disk; returns a function that makes room again.
   * @param {'broker' | 'postgres'} store
   */
  async fillDisk(store) {
    const ballast = join(this.stores.folders[store], 'ballast');
    const file = await open(ballast, 'w');
    let filling = true;
    const block = Buffer.alloc(1024 * 1024, 1);
    const tail = Buffer.alloc(4096, 1);
    // the store may delete files meanwhile
    const work = (async () => {
      while (filling) await file.write(block).catch(() => file.write(tail).catch(() => sleep(100)));
    })();
    return async () => {
      filling = false;
      await work;
      await file.close();
      await rm(ballast, { force: true });
    };
  }

  async stop() {
    await Promise.all(this.apps.map((apps) => apps.stopAll()));
    await this.stores.stop();
  }
}

/** How often each word occurs. @param {string[]} words @returns {Record<string, number>} */
export function count(words) {
  return Object.fromEntries([...Map.groupBy(words, (word) => word)].map(([word, all]) => [word, all.length]));
}

/** @param {number} pid */
function childrenOf(pid) {
  try {
    return execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
      .trim()
      .split('\n')
      .filter(Boolean)
      .map(Number);
  } catch {
    return [];
  }
}
