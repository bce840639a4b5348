import { Inject, Injectable, type OnApplicationShutdown, type Provider } from '@nestjs/common';
import { resolve } from 'node:path';
import { readConfig } from '#config';
import { LOG, type Log } from '#observability';
import type { JailChoice } from './sandbox/jail/choose-jail.js';
import { ProcessSandbox } from './sandbox/process-sandbox.js';
import { defaultSandboxConfig, type SandboxConfig } from './sandbox/sandbox-config.js';
import type { Sandbox } from './sandbox/sandbox.js';

/** Injection token of the sandbox. */
export const SANDBOX = Symbol('sandbox');

const JAILS: JailChoice[] = ['auto', 'bwrap', 'unshare', 'setpriv', 'none'];

export const readSandboxConfig = (): SandboxConfig =>
  readConfig((env) => ({
    ...defaultSandboxConfig,
    dataDir: resolve(env.text('SLUICE_DATA_DIR', '.sluice')),
    // The container image sets it
    prebuiltJailRoots: env.list('RUNNER_JAIL_ROOTS', ''),
    jail: env.choice('RUNNER_JAIL', 'auto', JAILS),
    jailRequired: env.boolean('RUNNER_JAIL_REQUIRED', process.env.NODE_ENV === 'production'),
    allowPrivateHosts: env.optional('SLUICE_ALLOW_PRIVATE_HOSTS') ?? '',
    isolation: env.choice('RUNNER_ISOLATION', 'account', ['account', 'source'] as const),
  }));

export const sandboxProvider: Provider = {
  provide: SANDBOX,
  inject: [LOG],
  useFactory: async (log: Log): Promise<Sandbox> => {
    const sandbox = await ProcessSandbox.start(readSandboxConfig());
    const { jail, refused } = sandbox.health();
    log.info({ jail, refused }, 'sandbox.started');
    return sandbox;
  },
};

/** Ends the components' processes after everything that runs them has stopped. */
@Injectable()
export class SandboxLife implements OnApplicationShutdown {
  constructor(@Inject(SANDBOX) private readonly sandbox: Sandbox) {}

  onApplicationShutdown(): Promise<void> {
    return this.sandbox.close();
  }
}
