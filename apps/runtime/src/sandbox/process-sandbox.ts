import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { bundleFiles } from './bundle-files.js';
import { AddressGuard } from '#egress';
import { FairSlots } from '#limits';
import { EgressBudgets, type Spend } from './egress/egress-budget.js';
import { ExchangeBase } from './processes/exchange.js';
import { freeMemoryMb } from './jail/free-memory.js';
import type { WithMemory } from './jail/run-in-jail.js';
import { chooseJail, type ChosenJail } from './jail/choose-jail.js';
import { jailRootParent, keepJailRoot, openJailRoot } from './jail/jail-root.js';
import { RunnerUsers } from './jail/runner-users.js';
import { RunnerPool, type Purpose } from './processes/runner-pool.js';
import { RunnerProcess } from './processes/runner-process.js';
import type { SandboxConfig } from './sandbox-config.js';
import { packageClosure } from './jail/jail-root-parts.js';
import { PackageInstaller, type PackageSettings } from './packages/package-installer.js';
import type {
  Caller,
  ComponentCode,
  ComponentDescription,
  ComponentFiles,
  Inspector,
  PackageBundle,
  PackageImport,
  RunJob,
  RunOutcome,
  Sandbox,
  SandboxHealth,
} from './sandbox.js';

// A run whose process ended because of another run is repeated alone; that process may have to end for the sake of others, several times
const mostAttempts = 6;
// An accepted inspection occupies memory and one of the 128 requests that this process handles at a time
const installationLimits = { atATime: 2, atATimePerAccount: 1, waitingPerAccount: 10, waiting: 20 };
const inspectionLimits = { atATime: 4, atATimePerAccount: 2, waitingPerAccount: 20, waiting: 44 };

/** Components in jailed Node processes, one per account. */
export class ProcessSandbox implements Sandbox {
  private readonly pool: RunnerPool<RunnerProcess>;
  private readonly users = new RunnerUsers();
  private readonly exchanges = new ExchangeBase();
  private readonly guard: AddressGuard;
  private readonly budgets: EgressBudgets;
  private readonly inspections = new FairSlots(inspectionLimits);
  private readonly installations = new FairSlots(installationLimits);
  private readonly packages: PackageInstaller;
  private readonly withMemory: WithMemory = (until, work) => this.pool.withMemory(until, work);

  private constructor(
    private readonly config: SandboxConfig,
    private readonly chosen: ChosenJail,
    private readonly releaseRoot: () => void,
    packages: PackageSettings,
    shipped: ReadonlyMap<string, string>,
    spend?: Spend,
  ) {
    const { lookup, ownHosts } = config;
    this.guard = AddressGuard.fromConfig(config.allowPrivateHosts, { ...(lookup && { lookup }), ...(ownHosts && { ownHosts }) });
    this.budgets = new EgressBudgets(config.egress, spend);
    this.packages = new PackageInstaller(packages, {
      jail: chosen.jail,
      exchanges: this.exchanges,
      uid: this.users.ofInstallations,
      withMemory: this.withMemory,
      shipped,
      spend,
    });
    const { memoryMb, heldOutputBytes } = config.limits;
    const memory = { memoryMb, heldOutputBytes, freeMb: freeMemoryMb };
    this.pool = new RunnerPool((purpose) => this.launch(purpose), { ...config, ...memory });
  }

  /**
   * Builds the jail's root if necessary, and finds a jail that works here.
   * @param spend receives what an account costs beside its runs
   * @throws Error with the reason if no jail works
   */
  static async start(config: SandboxConfig, spend?: Spend): Promise<ProcessSandbox> {
    const root = await openJailRoot(config.prebuiltJailRoots, config.dataDir, config.modules);
    const chosen = await chooseJail(root, config.jail, !config.trustsComponents, new RunnerUsers().next());
    const shipped = await packageClosure(config.modules);
    const direct = shipped.filter(({ to }) => config.modules.includes(to.slice('node_modules/'.length)));
    const versions = new Map(direct.map(({ to, version }) => [to.slice('node_modules/'.length), version]));
    // Beside the jail's root: both have to be reachable for the jail's user
    const parent = await jailRootParent(config.dataDir).catch(() => config.dataDir);
    const packages = { ...config.packages, store: config.packages.store || join(parent, 'packages') };
    const sandbox = new ProcessSandbox(config, chosen, keepJailRoot(root), packages, versions, spend);
    // If no runner can start (Node lacks internals that the guest needs), fail now and not at the first run
    await sandbox.pool.fill(Math.min(config.blanks, 1)).catch(async (error: unknown) => {
      await sandbox.close();
      throw error;
    });
    return sandbox;
  }

  inspect(component: ComponentCode, inspector: Inspector = {}): Promise<ComponentDescription> {
    const { accountId = '' } = inspector;
    return this.inTurn(inspector, (until) => this.pool.alone(accountId, (process) => process.inspect(component, until, inspector)));
  }

  bundlePackages(imports: PackageImport[], { accountId = '', until }: Caller = {}): Promise<PackageBundle> {
    const deadline = until ?? Date.now() + this.config.limits.installMs;
    return this.installations.use(accountId, deadline, () => this.packages.bundle(imports, { accountId, until: deadline }));
  }

  /** Downloads packages, so that they can be installed without a registry later. Returns the exact version of each. @throws ComponentRejected */
  preload(packages: string[]): Promise<Record<string, string>> {
    return this.packages.preload(packages);
  }

  bundle(files: ComponentFiles, caller: Caller = {}): Promise<string> {
    return this.inTurn(caller, async (until) => {
      const exchangeDir = await this.exchanges.folder();
      const { cpuMs } = this.config.limits;
      try {
        const { withMemory } = this;
        return await bundleFiles(files, { jail: this.chosen.jail, uid: this.users.next(), exchangeDir, cpuMs, withMemory, until });
      } finally {
        await rm(exchangeDir, { recursive: true, force: true });
      }
    });
  }

  /** The sandbox's own limit begins with the turn: how long others take is not the fault of this work. */
  private async inTurn<T>({ accountId = '', until }: Caller, work: (until: number) => Promise<T>): Promise<T> {
    const ownLimit = (): number => Date.now() + this.config.limits.inspectMs;
    const deadline = until ?? ownLimit();
    return this.inspections.use(accountId, deadline, () => work(Math.min(deadline, ownLimit())));
  }

  async run(job: RunJob): Promise<RunOutcome> {
    let responded = false;
    const once: RunJob = {
      ...job,
      onRespond: (reply) => {
        if (responded) return;
        responded = true;
        job.onRespond?.(reply);
      },
    };
    let attempt = await this.pool.run(this.tenantOf(job.accountId, job.sourceId), once);
    let { mainMs } = attempt.outcome;
    for (let n = 1; attempt.again && n < mostAttempts; n++) {
      attempt = await this.pool.alone(job.accountId, (process) => process.run(once));
      mainMs += attempt.outcome.mainMs;
    }
    return { ...attempt.outcome, mainMs, responded };
  }

  forget(accountId: string, sourceId: string): void {
    this.pool.forget(this.tenantOf(accountId, sourceId), sourceId);
  }

  health(): SandboxHealth {
    const { jail, refused } = this.chosen;
    const { processes, running, waiting } = this.pool;
    return { jail: jail.rung, refused, processes, running, waiting };
  }

  /** Whether this sandbox has assigned the user to a process. Only if we are root do processes have separate users. */
  ownsUser(uid: number): boolean {
    return process.getuid?.() === 0 && this.users.gave(uid);
  }

  async close(): Promise<void> {
    await this.pool.close();
    this.releaseRoot();
    this.exchanges.close();
  }

  private tenantOf(accountId: string, sourceId: string): string {
    return this.config.isolation === 'source' ? `${accountId}/${sourceId}` : accountId;
  }

  private async launch(purpose: Purpose): Promise<RunnerProcess> {
    const { limits, modules, warmModules, trustedCa, hardened } = this.config;
    const uid = this.users.next();
    const exchange = await this.exchanges.open(uid, this.guard, this.config.egress);
    const settings = {
      jail: this.chosen.jail,
      budgets: this.budgets,
      uid,
      limits,
      modules,
      warm: purpose === 'to wait' ? warmModules : [],
      trustedCa,
      hardened,
    };
    try {
      return await RunnerProcess.start(settings, exchange);
    } catch (error) {
      void exchange.close();
      throw error;
    }
  }
}
