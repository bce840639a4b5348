import type { Provider } from '@nestjs/common';
import { LOG, type Log } from '#observability';
import { DeploymentsRepository } from '../deployments/deployments.repository.js';
import { ProcessSandbox } from '../sandbox/process-sandbox.js';
import { Sandbox } from '../sandbox/sandbox.js';
import { ConsoleConfig, ConsoleSandbox } from './console-sandbox.js';

/** The sandbox that the services use. */
export const consoleProvider: Provider = {
  provide: Sandbox,
  inject: [ProcessSandbox, DeploymentsRepository, LOG],
  useFactory: (sandbox: Sandbox, deployments: DeploymentsRepository, log: Log): Sandbox =>
    ConsoleConfig.read().logsComponents ? new ConsoleSandbox(sandbox, deployments, log) : sandbox,
};
