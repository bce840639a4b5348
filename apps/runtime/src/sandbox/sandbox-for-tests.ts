import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Spend } from './egress/egress-budget.js';
import { ProcessSandbox } from './process-sandbox.js';
import { defaultLimits, defaultSandboxConfig, type SandboxConfig, type SandboxLimits } from './sandbox-config.js';
import type { ComponentCode, RunJob } from './sandbox.js';

/** Wall-clock limits that even a slow machine does not reach. A test of one of them sets it. */
const patientLimits: Partial<SandboxLimits> = { startMs: 120_000, wallMs: 120_000, inspectMs: 120_000 };

/** A sandbox in the strongest jail of this machine. Its root stays in the temporary directory for the next test run. */
export function startTestSandbox(
  { limits, ...config }: Partial<Omit<SandboxConfig, 'limits'>> & { limits?: Partial<SandboxLimits> } = {},
  spend?: Spend,
): Promise<ProcessSandbox> {
  return ProcessSandbox.start(
    {
      ...defaultSandboxConfig,
      dataDir: join(tmpdir(), `sluice-test-${process.getuid?.() ?? ''}`),
      trustsComponents: true,
      blanks: 1,
      warmModules: [],
      ...config,
      limits: { ...defaultLimits, ...patientLimits, ...limits },
    },
    spend,
  );
}

export function componentOf(code: string): ComponentCode {
  return { hash: createHash('sha256').update(code).digest('hex'), code };
}

/** A run of this code, with defaults for everything else. */
export function jobOf(code: string, job: Partial<Omit<RunJob, 'component'>> = {}): RunJob {
  return {
    runId: 'run',
    accountId: 'u_test',
    sourceId: 'dc_test',
    component: componentOf(code),
    method: 'run',
    props: {},
    endpoint: null,
    db: {},
    event: undefined,
    ...job,
  };
}
