import { boolean, Config } from '#config';
import type { Log } from '#observability';
import type { DeploymentsRepository } from '../deployments/deployments.repository.js';
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
} from '../sandbox/sandbox.js';

export class ConsoleConfig extends Config({
  logsComponents: boolean('SLUICE_LOG_COMPONENTS', {
    fallback: false,
    description:
      'Whether the log also contains what components write to the console, and the errors that they throw, with the name of the source. ' +
      'For development; `npm start` sets it.',
  }),
}) {}

/** A sandbox that logs the console lines and the error of each run: people who write a component see them where they started Sluice. */
export class ConsoleSandbox implements Sandbox {
  constructor(
    private readonly sandbox: Sandbox,
    private readonly deployments: Pick<DeploymentsRepository, 'find'>,
    private readonly log: Log,
  ) {}

  async run(job: RunJob): Promise<RunOutcome> {
    const outcome = await this.sandbox.run(job);
    if (job.method !== 'options' && (outcome.error || outcome.logs.length > 0)) await this.show(job, outcome);
    return outcome;
  }

  private async show({ sourceId, runId, method }: RunJob, { logs, error }: RunOutcome): Promise<void> {
    // a deleted source still runs its last hook
    const name = (await this.deployments.find(sourceId).catch(() => undefined))?.name_slug ?? sourceId;
    for (const { level, message } of logs)
      this.log.info({ source: name, source_id: sourceId, console: level, message }, 'component.logged');
    if (error) this.log.info({ source: name, source_id: sourceId, run_id: runId, method, stack: error.stack }, 'component.threw');
  }

  inspect = (component: ComponentCode, caller?: Inspector): Promise<ComponentDescription> => this.sandbox.inspect(component, caller);
  bundlePackages = (imports: PackageImport[], caller?: Caller): Promise<PackageBundle> => this.sandbox.bundlePackages(imports, caller);
  bundle = (files: ComponentFiles, caller?: Caller): Promise<string> => this.sandbox.bundle(files, caller);
  health = (): SandboxHealth => this.sandbox.health();
  close = (): Promise<void> => this.sandbox.close();
}
