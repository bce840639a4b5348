import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { APPS } from '../scripts/processes/apps.mjs';
import { kubectl, kubectlArguments } from '../scripts/stories/kubernetes.mjs';
import type { Api } from './support/api.js';
import { Calls } from './support/calls.js';
import { eventually } from './support/eventually.js';
import { startSystem, type System } from './support/system.js';
import { needing, target } from './support/target.js';

const settings = target.kind === 'kubernetes' ? target.kubernetes! : { namespace: '' };
const { describe } = needing('cluster', 'control');

/** How a container of a pod has ended: `<name of the pod> <exit code>`, as the cluster reports it. */
class EndedContainers {
  readonly exitCodes = new Map<string, number>();
  private readonly watch = spawn(
    'kubectl',
    kubectlArguments(settings, [
      'get',
      'pods',
      '--watch',
      '--output=jsonpath={.metadata.name} {.status.containerStatuses[?(@.name=="sluice")].state.terminated.exitCode}{"\\n"}',
    ]),
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );

  constructor() {
    let rest = '';
    this.watch.stdout.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop()!;
      for (const [pod, code] of lines.map((line) => line.split(' '))) if (pod && code) this.exitCodes.set(pod, Number(code));
    });
  }

  async stop(): Promise<void> {
    if (this.watch.exitCode !== null) return;
    this.watch.kill();
    await once(this.watch, 'exit');
  }
}

/** Connects from inside the pod of an app. Resolves to `open`, or to how it failed within two seconds. */
async function probe(app: string, host: string, port: number): Promise<string> {
  const script = `const { connect } = require('node:net');
    const end = (outcome) => { console.log(outcome); process.exit(); };
    connect({ host: '${host}', port: ${port} }, () => end('open')).on('error', ({ code }) => end(code));
    setTimeout(end, 2000, 'no response');`;
  return (await kubectl(settings, ['exec', `deployment/${app}`, '--', 'node', '--eval', script])).trim();
}

async function podAddress(namespace: string, selector: string): Promise<string> {
  const inNamespace = { ...settings, namespace };
  return (await kubectl(inNamespace, ['get', 'pods', '--selector', selector, '--output=jsonpath={.items[0].status.podIP}'])).trim();
}

let system: System;
let api: Api;

beforeAll(async () => {
  system = await startSystem();
  api = await system.account();
});
afterAll(() => system?.stop());

describe('a Deployment with one replica', () => {
  let ended: EndedContainers;
  beforeAll(() => {
    ended = new EndedContainers();
  });
  afterAll(() => ended.stop());

  it.each(APPS)('is replaced without a failed call when %s is rolled, and the old pod exits by itself', async (app) => {
    const source = await api.source("export default { name: 'called' }");
    const before = new Set(ended.exitCodes.keys());
    const calls = new Calls(api, ['/users/me', `/sources/${source.id}`, '/users/me/webhooks'], () => system.apps.apiUrls());
    await system.apps.restart(app);
    const { made, failures } = await calls.stop();
    expect(failures).toEqual([]);
    expect(made).toBeGreaterThan(50);
    const codes = await eventually(() => {
      const stopped = [...ended.exitCodes].filter(([pod]) => pod.startsWith(`${app}-`) && !before.has(pod));
      if (stopped.length === 0) throw new Error(`no pod of ${app} has ended`);
      return stopped.map(([, code]) => code);
    });
    // 137 would be a SIGKILL at the end of the grace period
    expect(codes).toEqual([0]);
  });
});

describe('the network policies', () => {
  it.each(['kafka:9092', 'postgres:5432'])('let the runtime reach %s', async (address) => {
    const [host, port] = address.split(':');
    expect(await probe('runtime', host!, Number(port))).toBe('open');
  });

  it.each([
    ['the REST API', 'gateway', 3000],
    ['the health port of the gateway', 'gateway', 8080],
    ['the health port of routing', 'routing', 8080],
  ])('do not let the runtime reach %s, which is open inside its own pod', async (_, app, port) => {
    const address = await podAddress(settings.namespace, `app.kubernetes.io/component=${app}`);
    expect(await probe(app, address, port)).toBe('open');
    expect(await probe('runtime', address, port)).not.toBe('open');
  });

  it('do not let the runtime reach pods of other namespaces, except for their DNS', async () => {
    const dns = await podAddress('kube-system', 'k8s-app=kube-dns');
    expect(await probe('runtime', dns, 53)).toBe('open');
    // the ports of CoreDNS for its probes
    for (const port of [8080, 8181]) expect(await probe('runtime', dns, port)).not.toBe('open');
  });
});
