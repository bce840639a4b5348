// npm run test:k8s [-- options] [-- arguments for jest]: runs the stories of test/ against k8s/overlays/dev, in a namespace of kubectl's current cluster.
import { dump, loadAll } from 'js-yaml';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { runScript } from './shell/command.mjs';
import { ExplainedError } from './shell/explained-error.mjs';
import { addressTowards } from './stories/instance.mjs';
import { interruptible } from './stories/interruptible.mjs';
import { kubectl } from './stories/kubernetes.mjs';
import { inRoot } from './shell/paths.mjs';
import { runStories } from './stories/run-jest.mjs';
import { run } from './shell/run.mjs';
import { ensureDependencies } from './setup/setup.mjs';
import { timed, times } from './shell/timed.mjs';

const USAGE = `Usage: npm run test:k8s -- [options] [-- arguments for jest]

Applies k8s/overlays/dev in a new namespace, opens its ports on the nodes, runs the stories of test/ against it, and deletes the namespace.
The image must be on the nodes, or in a registry that they can pull from.

  --image NAME:TAG      of Sluice (default: the one that the manifests name)
  --context NAME        of kubectl (default: its current one)
  --namespace NAME      that does not exist yet (default: sluice-test)
  --node ADDRESS        of a node, for this machine (default: its InternalIP)
  --receiver-host HOST  the address of this machine for pods (default: the address from which this machine reaches the node)
  --keep                leave the namespace, and print how to delete it

npm run test:k8s -- test/page-walk runs one story.`;

/** The Services that the tests reach from outside the cluster, each on a port of the nodes. */
const OUTSIDE = [
  { name: 'gateway', port: 3000, targetPort: 'http', selector: component('gateway') },
  { name: 'endpoints', port: 3001, targetPort: 'endpoints', selector: component('runtime') },
  { name: 'kafka', port: 9094, targetPort: 'forwarded', selector: { 'app.kubernetes.io/name': 'kafka' } },
];

await runScript(
  {
    usage: USAGE,
    options: {
      image: { type: 'string' },
      context: { type: 'string' },
      namespace: { type: 'string', default: 'sluice-test' },
      node: { type: 'string' },
      'receiver-host': { type: 'string' },
      keep: { type: 'boolean', default: false },
    },
  },
  testKubernetes,
);

/**
 * @param {{ image?: string, context?: string, namespace: string, node?: string, 'receiver-host'?: string, keep: boolean }} options
 * @param {string[]} positionals
 */
async function testKubernetes(options, positionals) {
  await ensureDependencies({ say: console.error });
  const settings = { namespace: options.namespace, context: options.context };
  await checkCluster(settings);
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'sluice-k8s-')));
  const { code, summary } = await interruptible(
    async () => {
      const target = await timed('start', () => start(settings, folder, options));
      await writeFile(join(folder, 'target.json'), JSON.stringify(target));
      return timed('stories', () => runStories(target, positionals));
    },
    async () => {
      if (options.keep) return console.log(keptHint(options.namespace, folder));
      await timed('removal', () => kubectl(settings, ['delete', 'namespace', options.namespace, '--timeout=180s', '--ignore-not-found']));
      await rm(folder, { recursive: true, force: true });
    },
  );
  console.log(`${times()}\n${summary}`);
  return code;
}

/** @param {import('./stories/kubernetes.mjs').KubernetesSettings} settings */
async function checkCluster(settings) {
  const { code, output, missing } = await run('kubectl', [
    ...(settings.context ? ['--context', settings.context] : []),
    'get',
    '--raw',
    '/readyz',
  ]);
  if (missing) throw new ExplainedError('kubectl is not installed.');
  if (code !== 0) throw new ExplainedError(`kubectl finds no cluster that responds (${output.trim().split('\n').at(-1)}).`);
  if ((await kubectl(settings, ['get', 'namespace', settings.namespace, '--ignore-not-found'])).trim())
    throw new ExplainedError(
      `The namespace ${settings.namespace} already exists: delete it (kubectl delete namespace ${settings.namespace}) or choose another with --namespace.`,
    );
}

/**
 * @param {import('./stories/kubernetes.mjs').KubernetesSettings} settings
 * @param {string} folder
 * @param {{ image?: string, node?: string, 'receiver-host'?: string }} options
 */
async function start(settings, folder, options) {
  const { namespace } = settings;
  const node = options.node ?? (await addressOfNode(settings));
  const receiverHost = options['receiver-host'] ?? (await addressTowards(node));
  await kubectl(settings, ['create', 'namespace', namespace]);
  // the ports come first: Kafka must announce its own
  await writeManifest(join(folder, 'outside.yaml'), OUTSIDE.map(nodePortService));
  await kubectl(settings, ['apply', '--filename', join(folder, 'outside.yaml')]);
  const ports = await nodePorts(settings);

  await writeManifest(join(folder, 'network-policies.yaml'), networkPolicies(receiverHost));
  const overlay = await makeOverlay(folder, {
    namespace,
    image: options.image,
    variables: { SLUICE_ENDPOINTS_URL: `http://${node}:${ports.endpoints}`, SLUICE_ALLOW_PRIVATE_HOSTS: receiverHost },
    kafkaAddress: `${node}:${ports.kafka}`,
  });
  await writeManifest(join(folder, 'kustomization.yaml'), [overlay]);
  await kubectl(settings, ['apply', '--kustomize', folder]);
  const workloads = (await kubectl(settings, ['get', 'statefulsets,deployments', '--output=name'])).trim().split('\n');
  try {
    await Promise.all(workloads.map((workload) => kubectl(settings, ['rollout', 'status', workload, '--timeout=300s'])));
  } catch {
    throw new ExplainedError(`Some pods did not become ready:\n${await kubectl(settings, ['get', 'pods', '--output=wide'])}`);
  }
  const context = settings.context ? `--context ${settings.context} ` : '';
  return {
    kind: 'kubernetes',
    apiUrl: `http://${node}:${ports.gateway}/v1`,
    endpointsUrl: `http://${node}:${ports.endpoints}`,
    brokers: `${node}:${ports.kafka}`,
    apiKey: '',
    cli: `kubectl ${context}--namespace ${namespace} exec --stdin deployment/gateway -- sluice`,
    receiverHost,
    lacks: { pause: 'a pod cannot be paused', processes: 'starts stores and apps itself; run it with npm test' },
    kubernetes: settings,
  };
}

/** @param {import('./stories/kubernetes.mjs').KubernetesSettings} settings */
async function addressOfNode(settings) {
  const { items } = JSON.parse(await kubectl(settings, ['get', 'nodes', '--output=json']));
  /** @type {{ type: string, address: string }[]} */
  const addresses = items.flatMap((/** @type {any} */ { status }) => status.addresses);
  const found = addresses.find(({ type }) => type === 'InternalIP');
  if (!found) throw new ExplainedError('No node of the cluster has an InternalIP: set an address with --node.');
  return found.address;
}

/** @param {import('./stories/kubernetes.mjs').KubernetesSettings} settings */
async function nodePorts(settings) {
  const { items } = JSON.parse(await kubectl(settings, ['get', 'services', '--output=json']));
  const ports = items.map((/** @type {any} */ { metadata, spec }) => [metadata.name.replace(/-outside$/, ''), spec.ports[0].nodePort]);
  return /** @type {Record<string, number>} */ (Object.fromEntries(ports));
}

/** @param {string} app */
function component(app) {
  return { 'app.kubernetes.io/name': 'sluice', 'app.kubernetes.io/component': app };
}

/** @param {(typeof OUTSIDE)[number]} outside */
function nodePortService({ name, port, targetPort, selector }) {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: `${name}-outside` },
    spec: { type: 'NodePort', selector, ports: [{ port, targetPort }] },
  };
}

/**
 * Additions to the policies of the manifests: Kafka from outside, and connections from the apps to the tests' servers.
 * @param {string} receiverHost
 */
function networkPolicies(receiverHost) {
  const version = isIP(receiverHost);
  const receiver = version ? [{ to: [{ ipBlock: { cidr: `${receiverHost}/${version === 4 ? 32 : 128}` } }] }] : [{}];
  return [
    networkPolicy('tests-reach-kafka', {
      podSelector: { matchLabels: { 'app.kubernetes.io/name': 'kafka' } },
      policyTypes: ['Ingress'],
      ingress: [{ ports: [{ protocol: 'TCP', port: 'forwarded' }] }],
    }),
    networkPolicy('apps-reach-tests', {
      podSelector: { matchLabels: { 'app.kubernetes.io/name': 'sluice' } },
      policyTypes: ['Egress'],
      egress: receiver,
    }),
  ];
}

/**
 * @param {string} name
 * @param {object} spec
 */
function networkPolicy(name, spec) {
  return { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name }, spec };
}

/**
 * @param {string} folder
 * @param {{ namespace: string, image?: string, variables: Record<string, string>, kafkaAddress: string }} options
 */
async function makeOverlay(folder, { namespace, image, variables, kafkaAddress }) {
  const dev = inRoot('k8s', 'overlays', 'dev');
  const { code, stdout, output } = await run('kubectl', ['kustomize', dev]);
  if (code !== 0) throw new ExplainedError(`kubectl cannot render ${dev}:\n${output.trim()}`);
  const rendered = /** @type {any[]} */ (loadAll(stdout));
  const kafka = rendered.find(({ kind, metadata }) => kind === 'StatefulSet' && metadata.name === 'kafka');
  const [container] = kafka.spec.template.spec.containers;
  const { name, value } = container.env.find((/** @type {{ name: string }} */ each) => each.name === 'KAFKA_ADVERTISED_LISTENERS');
  // a patched variable comes first in the list, before the variable that it would refer to
  const listeners = value.replaceAll('$(POD_NAMESPACE)', namespace).replace(/(?<=FORWARDED:\/\/)[^,]+/, kafkaAddress);
  const [, newName, newTag] = /^(.*?)(?::([^:/]+))?$/.exec(image ?? '') ?? [];
  return {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    namespace,
    resources: [relative(folder, dev), 'outside.yaml', 'network-policies.yaml'],
    configMapGenerator: [
      {
        name: 'sluice',
        // of the overlay below, into which this one is merged
        namespace: kafka.metadata.namespace,
        behavior: 'merge',
        literals: Object.entries(variables).map(([variable, text]) => `${variable}=${text}`),
      },
    ],
    ...(image ? { images: [{ name: 'sluice', newName, ...(newTag ? { newTag } : {}) }] } : {}),
    patches: [
      {
        patch: JSON.stringify({
          apiVersion: 'apps/v1',
          kind: 'StatefulSet',
          metadata: { name: 'kafka' },
          spec: { template: { spec: { containers: [{ name: container.name, env: [{ name, value: listeners }] }] } } },
        }),
      },
    ],
  };
}

/**
 * Several documents in one file.
 * @param {string} file
 * @param {object[]} documents
 */
async function writeManifest(file, documents) {
  await writeFile(file, documents.map((document) => dump(document)).join('---\n'));
}

/**
 * @param {string} namespace
 * @param {string} folder
 */
function keptHint(namespace, folder) {
  return `Left running.
Run a story again: SLUICE_E2E_TARGET="$(cat ${join(folder, 'target.json')})" npm test -- test/page-walk --selectProjects e2e
Delete it:         kubectl delete namespace ${namespace}`;
}
