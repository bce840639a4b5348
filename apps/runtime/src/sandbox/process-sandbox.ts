import { ComponentRejected } from './component-rejected.js';
import { ExchangeBase, removeExchange } from './exchange.js';
import { chooseJail, type ChosenJail } from './jail/choose-jail.js';
import { buildJailRoot } from './jail/jail-root.js';
import { jailRootParent } from './jail/jail-root-parent.js';
import { RunnerUsers } from './jail/runner-users.js';
import { RunnerPool } from './runner-pool.js';
import { RunnerProcess } from './runner-process.js';
import type { SandboxConfig } from './sandbox-config.js';
import type { ComponentCode, ComponentDescription, ComponentFiles, RunJob, RunOutcome, Sandbox, SandboxHealth } from './sandbox.js';
import { Slots } from './slots.js';

// A run whose process ends under it, through no fault of its own, starts again alone; that process too can be unlucky
const mostAttempts = 3;
const inspectionsAtATime = 4;

/** Components in jailed Node processes, one per account. */
export class ProcessSandbox implements Sandbox {
  private readonly pool: RunnerPool;
  private readonly users = new RunnerUsers();
  private readonly exchanges = new ExchangeBase();
  private readonly inspections = new Slots(inspectionsAtATime);

  private constructor(
    private readonly config: SandboxConfig,
    private readonly chosen: ChosenJail,
  ) {
    this.pool = new RunnerPool(() => this.launch(), config);
    this.pool.fill();
  }

  /** Builds the jail's root if need be and finds out which jail works here. @throws Error that says why none does */
  static async start(config: SandboxConfig): Promise<ProcessSandbox> {
    const root = await buildJailRoot(await jailRootParent(config.dataDir), config.modules);
    return new ProcessSandbox(config, await chooseJail(root, config.jail, config.jailRequired, new RunnerUsers().next()));
  }

  async inspect(component: ComponentCode): Promise<ComponentDescription> {
    await this.inspections.take();
    try {
      return await this.pool.alone((process) => process.inspect(component));
    } finally {
      this.inspections.give();
    }
  }

  async bundle(files: ComponentFiles): Promise<string> {
    throw new ComponentRejected(`Files cannot be bundled yet: ${files.entry}`);
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
    const tenant = this.config.isolation === 'source' ? `${job.accountId}/${job.sourceId}` : job.accountId;
    let attempt = await this.pool.run(tenant, once);
    for (let n = 1; attempt.again && n < mostAttempts; n++) attempt = await this.pool.alone((process) => process.run(once));
    return { ...attempt.outcome, responded };
  }

  health(): SandboxHealth {
    const { jail, refused } = this.chosen;
    const { processes, running, waiting } = this.pool;
    return { jail: jail.rung, refused, processes, running, waiting };
  }

  async close(): Promise<void> {
    await this.pool.close();
    this.exchanges.close();
  }

  private async launch(): Promise<RunnerProcess> {
    const { limits, modules, warmModules, trustedCa } = this.config;
    const uid = this.users.next();
    const dir = await this.exchanges.open(uid);
    const settings = { jail: this.chosen.jail, uid, limits, modules, warm: warmModules, trustedCa, hardened: true };
    return new RunnerProcess(settings, { dir, socketName: null, close: () => removeExchange(dir) });
  }
}
