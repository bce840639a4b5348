import { describe, it } from '@jest/globals';
import type { AddressInfo, Server } from 'node:net';
import { isOwnAddress } from '../../scripts/shell/ports.mjs';

/**
 * The capabilities that a story may need in addition to the REST API, the sources' endpoints and Kafka:
 *
 * - `accounts`: the operator's CLI, which creates accounts and keys. Without it, `System.account()` returns the account of the key.
 * - `receiver`: the instance can call servers of the tests: webhook receivers, files of components, a mail server
 * - `control`: apps can be killed, stopped and started
 * - `pause`: apps can be frozen and thawed
 * - `scale`: apps can have more replicas
 * - `broker`: Kafka can be killed and started
 * - `variables`: environment variables of apps can be changed
 * - `logs`: the apps' log lines can be read
 * - `processes`: the story starts stores and apps itself, which only `npm test` prepares
 * - `databases`: the story logs in to the database server of the apps
 * - `cluster`: the story is about the pods and policies of `k8s/`
 */
export type Capability =
  | 'accounts'
  | 'receiver'
  | 'control'
  | 'pause'
  | 'scale'
  | 'broker'
  | 'variables'
  | 'logs'
  | 'processes'
  | 'databases'
  | 'cluster';

/** A running instance; the scripts `test:e2e`, `test:compose` and `test:k8s` describe it in `SLUICE_E2E_TARGET`. */
export interface RunningTarget {
  kind: 'running' | 'compose' | 'kubernetes';
  apiUrl: string;
  endpointsUrl: string;
  brokers: string;
  /** An API key of the instance. */
  apiKey: string;
  /** A shell command that runs the operator's CLI. */
  cli?: string;
  /** The address or name under which the instance reaches this machine. */
  receiverHost?: string;
  /** `SLUICE_TOPIC_PREFIX` of the instance. */
  topicPrefix?: string;
  /** How clients outside connect and log in to its Kafka: variables of the services' configuration. */
  kafkaVariables?: Record<string, string>;
  /** Why the target lacks a capability. */
  lacks: Partial<Record<Capability, string>>;
  compose?: import('../../scripts/stories/compose.mjs').ComposeSettings;
  kubernetes?: import('../../scripts/stories/kubernetes.mjs').KubernetesSettings;
}

/** `local`: each story starts the five apps as processes. */
export type Target = { kind: 'local'; lacks: RunningTarget['lacks'] } | RunningTarget;

const described = process.env.SLUICE_E2E_TARGET;
/** Each local story gets a Kafka and a PostgreSQL that require logins (`npm run test:secured`). */
export const isSecured = process.env.SLUICE_TEST_SECURED === '1';
const SECURED = { broker: 'the secured broker is not killed', databases: 'the login of the stories is not that of the secured server' };
export const target: Target = described ? (JSON.parse(described) as RunningTarget) : { kind: 'local', lacks: isSecured ? SECURED : {} };

/** Why the target lacks a capability; undefined if it has it. */
const lack = (capability: Capability): string | undefined =>
  capability === 'cluster' && target.kind !== 'kubernetes' ? 'is about a cluster; run it with npm run test:k8s' : target.lacks[capability];

export const can = (capability: Capability): boolean => lack(capability) === undefined;

/** The name of a topic in the instance's Kafka. */
export const topic = (name: string): string => `${target.kind === 'local' ? '' : (target.topicPrefix ?? '')}${name}`;

/**
 * `describe` and `it` for stories that need more than every target has. If the target lacks it, they are skipped, and the reason is part
 * of their names; the runner summarises the reasons.
 */
export function needing(...needed: Capability[]): { describe: typeof describe; it: typeof it } {
  const reason = needed.map(lack).find((found) => found !== undefined);
  return reason === undefined ? { describe, it } : { describe: skipping(describe, reason), it: skipping(it, reason) };
}

function skipping<T extends typeof describe | typeof it>(all: T, reason: string): T {
  // `%` would be a placeholder in the names of `each`
  const named = (name: string) => `${name} [skipped: ${reason.replaceAll('%', '%%')}]`;
  const skip = all.skip as any;
  const each =
    (...table: unknown[]) =>
    (name: string, ...rest: unknown[]) =>
      skip.each(...table)(named(name), ...rest);
  return Object.assign((name: string, ...rest: unknown[]) => skip(named(name), ...rest), { each, skip, only: skip }) as unknown as T;
}

/** Listens on a free port where the target can reach it; returns `host:port`. */
export async function listenForTarget(server: Server): Promise<string> {
  const host = target.kind === 'local' ? '127.0.0.1' : (target.receiverHost ?? '127.0.0.1');
  // it may be a name that only the target knows, or an address that leads here indirectly
  const own = await isOwnAddress(host);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, own ? host : '0.0.0.0', resolve);
  });
  return `${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`;
}
