import { readFile, writeFile } from 'node:fs/promises';
import { type App, APPS } from '../../scripts/processes/apps.mjs';
import { compose, type ComposeSettings, docker, overrideFile } from '../../scripts/stories/compose.mjs';
import { eventually } from './eventually.js';
import type { Orchestrated } from './running-system.js';
import type { Variables } from './system.js';
import type { RunningTarget } from './target.js';

const READY_MS = 120_000;

/** The containers of a Compose project. */
export class ComposeApps implements Orchestrated {
  private readonly startedAt = new Date().toISOString();
  private killing: Promise<void> = Promise.resolve();
  private readonly replicas = new Map<App, number>(APPS.map((app) => [app, 1]));

  constructor(
    private readonly target: RunningTarget,
    private readonly settings: ComposeSettings,
  ) {}

  async settle(variables: Variables): Promise<void> {
    await this.scale(Object.fromEntries(APPS.map((app) => [app, 1])));
    const before = await this.overridden();
    const changed = APPS.filter((app) => JSON.stringify(before[app] ?? {}) !== JSON.stringify(variables[app] ?? {}));
    if (changed.length > 0) {
      const services = Object.fromEntries(Object.entries(variables).map(([app, environment]) => [app, { environment }]));
      await writeFile(overrideFile(this.settings), JSON.stringify({ services }));
      await compose(this.settings, ['up', '--detach', '--no-deps', '--no-build', ...changed]);
    }
    for (const service of ['kafka', ...APPS]) await this.resurrect(service);
    await Promise.all(['kafka', ...APPS].map((service) => this.healthy(service)));
  }

  /** Docker does not restart a container that was killed by a command; it would restart one that crashed. */
  kill(app: App): Promise<void> {
    // one after the other: a story may not wait for the end of a kill, and a container that has not restarted cannot be killed
    this.killing = this.killing.then(async () => {
      const [first] = await this.containers(app);
      await docker(['kill', first!.id]);
      await docker(['start', first!.id]);
    });
    return this.killing;
  }

  async stop(app: App): Promise<void> {
    await docker(['stop', ...(await this.ids(app))]);
  }

  async start(app: App): Promise<void> {
    await docker(['start', ...(await this.ids(app))]);
    await this.healthy(app);
  }

  async restart(app: App): Promise<void> {
    for (const id of await this.ids(app)) {
      await docker(['restart', id]);
      await this.healthy(app);
    }
  }

  async pause(app: App): Promise<void> {
    await docker(['pause', ...(await this.ids(app))]);
  }

  async resume(app: App): Promise<void> {
    await docker(['unpause', ...(await this.ids(app))]);
  }

  whenReady = (app: App): Promise<void> => this.healthy(app);

  async scale(wanted: Partial<Record<App, number>>): Promise<void> {
    const changes = Object.entries(wanted) as [App, number][];
    const up = changes.filter(([app, count]) => count > this.replicas.get(app)!);
    const down = changes.filter(([app, count]) => count < this.replicas.get(app)!);
    for (const [app, count] of down) await this.up({ [app]: count });
    // a container with a published port uses the number in the variables at its creation, so they are created one at a time
    const published = up.filter(([app]) => app === 'gateway' || app === 'runtime');
    for (const [app, count] of published) for (let n = this.replicas.get(app)! + 1; n <= count; n++) await this.up({ [app]: n });
    const others = up.filter((each) => !published.includes(each));
    if (others.length > 0) await this.up(Object.fromEntries(others));
    await Promise.all(changes.map(([app]) => this.healthy(app)));
  }

  apiUrls = (): string[] =>
    this.settings.httpPorts.slice(0, this.replicas.get('gateway')).map((port) => this.target.apiUrl.replace(/:\d+\//, `:${port}/`));
  endpointsUrls = (): string[] =>
    this.settings.endpointsPorts
      .slice(0, this.replicas.get('runtime'))
      .map((port) => this.target.endpointsUrl.replace(/:\d+$/, `:${port}`));

  async logs(app: App): Promise<string[]> {
    const printed = await compose(this.settings, ['logs', '--no-color', '--no-log-prefix', '--since', this.startedAt, app]);
    return printed.split('\n').filter(Boolean);
  }

  readonly broker = {
    kill: async (): Promise<void> => {
      await docker(['kill', ...(await this.ids('kafka'))]);
    },
    start: async (): Promise<void> => {
      await docker(['start', ...(await this.ids('kafka'))]);
      await this.healthy('kafka');
    },
  };

  /** Creates and removes containers until the number is right; the others are not changed. */
  private async up(replicas: Partial<Record<App, number>>): Promise<void> {
    const counts = Object.entries(replicas) as [App, number][];
    const scales = counts.flatMap(([app, count]) => ['--scale', `${app}=${count}`]);
    const port = (app: App, ports: number[]) => String(ports[(replicas[app] ?? 1) - 1] ?? ports[0]);
    const { httpPorts, endpointsPorts } = this.settings;
    const variables = { SLUICE_HTTP_PORT: port('gateway', httpPorts), SLUICE_ENDPOINTS_PORT: port('runtime', endpointsPorts) };
    const options = ['--detach', '--no-deps', '--no-build', '--no-recreate', ...scales];
    await compose(this.settings, ['up', ...options, ...counts.map(([app]) => app)], variables);
    for (const [app, count] of counts) this.replicas.set(app, count);
  }

  private async overridden(): Promise<Variables> {
    const { services } = JSON.parse(await readFile(overrideFile(this.settings), 'utf8')) as {
      services: Record<string, { environment: Record<string, string> }>;
    };
    return Object.fromEntries(Object.entries(services).map(([app, { environment }]) => [app, environment]));
  }

  /** All containers of a service, in the order of their numbers. */
  private async containers(service: string): Promise<{ id: string; state: string; status: string }[]> {
    const filters = Object.entries({ project: this.settings.project, service, oneoff: 'False' });
    const labels = filters.flatMap(([name, value]) => ['--filter', `label=com.docker.compose.${name}=${value}`]);
    const format = '{{.Label "com.docker.compose.container-number"}} {{.ID}} {{.State}} {{.Status}}';
    const lines = (await docker(['ps', '--all', ...labels, '--format', format])).split('\n').filter(Boolean);
    return lines
      .map((line) => line.split(' '))
      .sort((a, b) => Number(a[0]) - Number(b[0]))
      .map(([, id, state, ...status]) => ({ id: id!, state: state!, status: status.join(' ') }));
  }

  private ids = async (service: string): Promise<string[]> => (await this.containers(service)).map(({ id }) => id);

  private async resurrect(service: string): Promise<void> {
    for (const { id, state } of await this.containers(service)) {
      if (state === 'paused') await docker(['unpause', id]);
      if (state === 'exited' || state === 'created') await docker(['start', id]);
    }
  }

  private healthy(service: string): Promise<void> {
    return eventually(
      async () => {
        for (const { id, status } of await this.containers(service))
          if (!status.includes('(healthy)')) throw new Error(`${service} is not ready: container ${id} is ${status}`);
      },
      { withinMs: READY_MS },
    );
  }
}
