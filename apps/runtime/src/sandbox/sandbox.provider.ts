import { Injectable, type OnApplicationShutdown, type Provider } from '@nestjs/common';
import { resolve } from 'node:path';
import type { UserId } from '#contracts';
import { AccountPace, MS_PER_UNIT } from '#fairness';
import { LOG, type Log } from '#observability';
import { CannotStart } from '#service';
import type { Spend } from './egress/egress-budget.js';
import { NoJailRoot } from './jail/jail-root.js';
import { ProcessSandbox } from './process-sandbox.js';
import { PackagesConfig } from './packages/packages.config.js';
import { RunnerConfig } from './runner.config.js';
import { defaultLimits, defaultSandboxConfig, type SandboxConfig } from './sandbox-config.js';
import { Sandbox, SandboxUnavailable } from './sandbox.js';

export function readSandboxConfig(): SandboxConfig {
  const { runSeconds, cpuSeconds, memoryMb, emits, eventBytes, ...config } = RunnerConfig.read();
  const { policy, list, store, downloadedBytesPerDay } = PackagesConfig.read();
  const packages = { policy, list, store: store && resolve(store), downloadedBytesPerDay };
  const limits = {
    ...defaultLimits,
    ...{ wallMs: runSeconds * 1000, cpuMs: cpuSeconds * 1000, silenceCpuMs: cpuSeconds * 400 },
    ...{ memoryMb, heapMb: Math.floor(memoryMb / 2), emits, eventBytes },
  };
  return { ...defaultSandboxConfig, ...config, limits, dataDir: resolve(config.dataDir), packages };
}

/** @throws CannotStart when this machine cannot run a sandbox */
export function startSandbox(config: SandboxConfig, spend?: Spend): Promise<ProcessSandbox> {
  return ProcessSandbox.start(config, spend).catch((error: unknown) => {
    throw error instanceof SandboxUnavailable || error instanceof NoJailRoot ? new CannotStart(error.message) : error;
  });
}

export const sandboxProvider: Provider = {
  provide: Sandbox,
  inject: [LOG, AccountPace],
  useFactory: async (log: Log, pace: AccountPace): Promise<Sandbox> => {
    const sandbox = await startSandbox(readSandboxConfig(), (accountId, ms) => pace.spend(accountId as UserId, ms / MS_PER_UNIT));
    const { jail, refused } = sandbox.health();
    log.info({ jail, refused }, 'sandbox.started');
    return sandbox;
  },
};

/** Ends the components' processes after everything that runs them has stopped. */
@Injectable()
export class SandboxLife implements OnApplicationShutdown {
  constructor(private readonly sandbox: Sandbox) {}

  onApplicationShutdown(): Promise<void> {
    return this.sandbox.close();
  }
}
