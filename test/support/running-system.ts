import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { KafkaConfig } from '../../libs/messaging/src/kafka.config.js';
import { Api, newEmail } from './api.js';
import { ComposeApps } from './compose-apps.js';
import { KubernetesApps } from './kubernetes-apps.js';
import { logins } from './outside-kafka.js';
import type { Apps, Broker, System, SystemOptions, Variables } from './system.js';
import type { RunningTarget } from './target.js';

const execute = promisify(execFile);

/** The apps of an instance whose containers or pods the tests control. */
export interface Orchestrated extends Apps {
  broker: Broker;
  /** Brings the instance to a known state: all apps ready, one replica each, with exactly these variables in addition to the target's. */
  settle(variables: Variables): Promise<void>;
}

/** The instance that `test:e2e`, `test:compose` or `test:k8s` found or started. Stopping it only removes the resources of the story. */
export async function joinRunningSystem(target: RunningTarget, { variables = {} }: SystemOptions): Promise<System> {
  logins.set(target.brokers, KafkaConfig.read({ KAFKA_BROKERS: target.brokers, ...target.kafkaVariables }).clientOptions());
  const apps = orchestrated(target);
  await apps.settle(variables);
  const clients: Api[] = [];
  const client = (account: Api['account']): Api => {
    const api = new Api(target.apiUrl, account);
    clients.push(api);
    return api;
  };
  const sluice = async (...args: string[]): Promise<unknown> => {
    if (!target.cli) throw new Error('this target has no CLI');
    // the shell splits the command as its user expects; the arguments are passed unchanged
    const { stdout } = await execute('/bin/sh', ['-c', `${target.cli} "$@"`, 'sh', ...args, '--json'], { timeout: 60_000 });
    return JSON.parse(stdout);
  };
  return {
    apiUrl: target.apiUrl,
    endpointsUrl: target.endpointsUrl,
    brokers: target.brokers,
    kafkaVariables: { KAFKA_BROKERS: target.brokers, ...target.kafkaVariables },
    apps,
    broker: apps.broker,
    sluice,
    account: async (email = newEmail()) => {
      if (target.cli) return client((await sluice('account', 'create', '--email', email)) as Api['account']);
      const { data } = (await new Api(target.apiUrl, { id: '', email: '', api_key: target.apiKey }).get('/users/me')).body;
      return client({ id: data.id, email: data.email, api_key: target.apiKey });
    },
    stop: async () => {
      await apps.settle({});
      await Promise.all(clients.map((api) => api.removeAll()));
    },
  };
}

function orchestrated(target: RunningTarget): Orchestrated {
  if (target.compose) return new ComposeApps(target, target.compose);
  if (target.kubernetes) return new KubernetesApps(target, target.kubernetes);
  return uncontrolled(target);
}

/** An instance whose apps a story cannot control. */
export function uncontrolled({ apiUrl, endpointsUrl }: Pick<RunningTarget, 'apiUrl' | 'endpointsUrl'>): Orchestrated {
  const refuse = async (): Promise<never> => {
    throw new Error('the tests do not control the apps of this target: the story must declare what it needs');
  };
  return {
    kill: refuse,
    stop: refuse,
    start: refuse,
    restart: refuse,
    whenReady: refuse,
    pause: refuse,
    resume: refuse,
    scale: refuse,
    logs: refuse,
    apiUrls: () => [apiUrl],
    endpointsUrls: () => [endpointsUrl],
    broker: { kill: refuse, start: refuse },
    settle: (variables) => (Object.keys(variables).length > 0 ? refuse() : Promise.resolve()),
  };
}
