import type { Environment } from './environment.js';

/** What an account may use a day (UTC). */
export interface DailyQuotas {
  computeMs: number;
  invocations: number;
}

/** The same variables for the gateway, which shows the quotas, and the runtime, which keeps to them. null: unlimited. */
export function readQuotas(env: Environment): DailyQuotas | null {
  if (env.choice('SLUICE_QUOTAS', 'unlimited', ['unlimited', 'free'] as const) === 'unlimited') return null;
  return {
    computeMs: env.integer('SLUICE_DAILY_COMPUTE_MS', 1_800_000, { max: 2_147_483_647 }),
    invocations: env.integer('SLUICE_DAILY_INVOCATIONS', 333, { max: 2_147_483_647 }),
  };
}
