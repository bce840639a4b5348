import { type App, APPS } from '../../scripts/processes/apps.mjs';
import { kubectl, type KubernetesSettings } from '../../scripts/stories/kubernetes.mjs';
import { http } from './api.js';
import { eventually } from './eventually.js';
import type { Orchestrated } from './running-system.js';
import type { Variables } from './system.js';
import type { RunningTarget } from './target.js';

const READY = '--timeout=180s';
/** Names the variables that a story has set, so that the next one can remove them. */
const MARK = 'sluice.test/variables';

interface Pod {
  metadata: { name: string; deletionTimestamp?: string };
}
interface Deployment {
  metadata: { name: string; annotations?: Record<string, string> };
  spec: { replicas: number; selector: { matchLabels: Record<string, string> } };
}

/** The Deployments of a namespace; each is named after its app. */
export class KubernetesApps implements Orchestrated {
  private readonly startedAt = new Date().toISOString();

  constructor(
    private readonly target: RunningTarget,
    private readonly settings: KubernetesSettings,
  ) {}

  async settle(variables: Variables): Promise<void> {
    for (const { metadata, spec } of await this.deployments()) {
      const app = metadata.name as App;
      if (!APPS.includes(app)) continue;
      if (spec.replicas !== 1) await this.kubectl('scale', `deployment/${app}`, '--replicas=1');
      const before = JSON.parse(metadata.annotations?.[MARK] ?? '{}') as Record<string, string>;
      const wanted = variables[app] ?? {};
      if (JSON.stringify(before) === JSON.stringify(wanted)) continue;
      const gone = Object.keys(before).filter((name) => !(name in wanted));
      const changes = [...Object.entries(wanted).map(([name, value]) => `${name}=${value}`), ...gone.map((name) => `${name}-`)];
      await this.kubectl('set', 'env', `deployment/${app}`, ...changes);
      await this.kubectl('annotate', '--overwrite', `deployment/${app}`, `${MARK}=${JSON.stringify(wanted)}`);
    }
    await this.broker.start();
    await Promise.all(APPS.map((app) => this.whenReady(app)));
    // a pod that is being stopped still handles records, with its previous variables
    await Promise.all(APPS.map((app) => this.expectPods(app, 1)));
  }

  async kill(app: App): Promise<void> {
    const [first] = await this.pods(app);
    await this.kubectl('delete', 'pod', first!, '--force', '--grace-period=0', '--ignore-not-found');
  }

  async stop(app: App): Promise<void> {
    await this.kubectl('scale', `deployment/${app}`, '--replicas=0');
    await this.expectPods(app, 0);
  }

  async start(app: App): Promise<void> {
    await this.kubectl('scale', `deployment/${app}`, '--replicas=1');
    await this.whenReady(app);
  }

  async restart(app: App): Promise<void> {
    const { spec } = (await this.deployments()).find(({ metadata }) => metadata.name === app)!;
    await this.kubectl('rollout', 'restart', `deployment/${app}`);
    await this.whenReady(app);
    await this.expectPods(app, spec.replicas);
  }

  pause = async (): Promise<void> => {
    throw new Error('a pod cannot be paused');
  };
  resume = this.pause;

  async whenReady(app: App): Promise<void> {
    await this.kubectl('rollout', 'status', `deployment/${app}`, READY);
    // the nodes update a Service's endpoints shortly after its first pod is ready
    const address = { gateway: this.target.apiUrl, runtime: this.target.endpointsUrl }[app as string];
    if (address) await eventually(() => http('GET', address, { agent: false }));
  }

  async scale(replicas: Partial<Record<App, number>>): Promise<void> {
    const counts = Object.entries(replicas) as [App, number][];
    for (const [app, count] of counts) await this.kubectl('scale', `deployment/${app}`, `--replicas=${count}`);
    await Promise.all(counts.map(([app]) => this.whenReady(app)));
    await Promise.all(counts.map(([app, count]) => this.expectPods(app, count)));
  }

  /** One Service for all replicas. */
  apiUrls = (): string[] => [this.target.apiUrl];
  endpointsUrls = (): string[] => [this.target.endpointsUrl];

  async logs(app: App): Promise<string[]> {
    const printed = await this.kubectl('logs', `deployment/${app}`, `--since-time=${this.startedAt}`);
    return printed.split('\n').filter(Boolean);
  }

  readonly broker = {
    kill: async (): Promise<void> => {
      await this.kubectl('scale', 'statefulset/kafka', '--replicas=0');
      // with --force, it would run for a moment longer
      await this.kubectl('delete', 'pod', 'kafka-0', '--grace-period=1', '--ignore-not-found');
    },
    start: async (): Promise<void> => {
      await this.kubectl('scale', 'statefulset/kafka', '--replicas=1');
      await this.kubectl('rollout', 'status', 'statefulset/kafka', READY);
    },
  };

  private kubectl = (...args: string[]): Promise<string> => kubectl(this.settings, args);

  private async deployments(): Promise<Deployment[]> {
    return (JSON.parse(await this.kubectl('get', 'deployments', '--output=json')) as { items: Deployment[] }).items;
  }

  /** The names of an app's pods that are not being deleted. */
  private async pods(app: App): Promise<string[]> {
    return (await this.allPods(app)).filter(({ metadata }) => !metadata.deletionTimestamp).map(({ metadata }) => metadata.name);
  }

  private async allPods(app: App): Promise<Pod[]> {
    const { spec } = (await this.deployments()).find(({ metadata }) => metadata.name === app)!;
    const labels = Object.entries(spec.selector.matchLabels).map(([name, value]) => `${name}=${value}`);
    return (JSON.parse(await this.kubectl('get', 'pods', '--selector', labels.join(','), '--output=json')) as { items: Pod[] }).items;
  }

  /** Resolves when the stopped pods are gone, too. */
  private expectPods(app: App, count: number): Promise<void> {
    return eventually(
      async () => {
        const there = (await this.allPods(app)).length;
        if (there !== count) throw new Error(`there are ${there} pods of ${app} instead of ${count}`);
      },
      { withinMs: 120_000 },
    );
  }
}
