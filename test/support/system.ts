import type { App } from '../../scripts/processes/apps.mjs';
import type { Api } from './api.js';
import { joinSharedSystem, startLocalSystem } from './local-system.js';
import { joinRunningSystem } from './running-system.js';
import { isSecured, target } from './target.js';

/** Environment variables by the app that reads them. */
export type Variables = Partial<Record<App, Record<string, string>>>;

/** A whole instance of Sluice, wherever it runs. It may contain accounts, components and events of others. */
export interface System {
  apiUrl: string;
  endpointsUrl: string;
  brokers: string;
  /** The variables that an operator's command needs to connect and log in to Kafka. */
  kafkaVariables: Record<string, string>;
  /** A client with a new account or, without the CLI (`accounts`), with the account of the key. */
  account(email?: string): Promise<Api>;
  /** Runs a command of the operator's CLI; returns its output, parsed as JSON. Needs `accounts`. */
  sluice(...args: string[]): Promise<any>;
  apps: Apps;
  broker: Broker;
  stop(): Promise<void>;
}

/** The apps' processes, containers or pods. */
export interface Apps {
  /** Kills one replica, as a crash does; it is restarted. Needs `control`. */
  kill(app: App): Promise<void>;
  /** Stops all replicas gracefully; they stay down until `start`. Needs `control`. */
  stop(app: App): Promise<void>;
  /** Starts stopped replicas; resolves when they are ready. Needs `control`. */
  start(app: App): Promise<void>;
  /** Restarts the replicas gracefully, each when the one before is ready. Needs `control`. */
  restart(app: App): Promise<void>;
  /** Resolves when all replicas are ready. Needs `control`. */
  whenReady(app: App): Promise<void>;
  /** Freezes an app. Needs `pause`. */
  pause(app: App): Promise<void>;
  resume(app: App): Promise<void>;
  /** Starts and stops replicas gracefully; resolves when all are ready. Needs `scale`. */
  scale(replicas: Partial<Record<App, number>>): Promise<void>;
  /** Base URLs of the REST API: one for each gateway that is individually reachable. */
  apiUrls(): string[];
  /** Likewise for the endpoints of sources. */
  endpointsUrls(): string[];
  /** The output of an app since the system was started, line by line. Needs `logs`. */
  logs(app: App): Promise<string[]>;
}

export interface Broker {
  /** Kills it. Needs `broker`. */
  kill(): Promise<void>;
  /** Resolves when it responds. */
  start(): Promise<void>;
  /** Deletes the data of a killed broker, like a disk that is lost. Needs `broker` and `processes`. */
  loseData?(): Promise<void>;
}

export interface SystemOptions {
  variables?: Variables;
  /** The story kills the broker: a local system gets a separate one. */
  killsBroker?: boolean;
}

/**
 * Starts the apps as processes, with the broker and the database server of this test run; or connects to the instance that
 * `SLUICE_E2E_TARGET` describes and brings it to the state that a story expects: all apps ready, one replica each, these variables.
 */
export const startSystem = (options: SystemOptions = {}): Promise<System> =>
  target.kind === 'local' ? startLocalSystem(options) : joinRunningSystem(target, options);

/**
 * For a story that only uses the system, and does not stop, scale or configure anything: in `npm test` these stories share one instance, whose
 * apps they do not control.
 */
export const joinSystem = (): Promise<System> =>
  target.kind !== 'local' ? joinRunningSystem(target, {}) : isSecured ? startLocalSystem({}) : joinSharedSystem();
