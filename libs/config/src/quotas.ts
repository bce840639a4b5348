import { choice, integer } from './variable.js';

/** The daily quota of an account (UTC). */
export interface DailyQuotas {
  computeMs: number;
  invocations: number;
}

/** The same variables for the gateway, which shows the quotas, and the runtime, which enforces them. */
export const quotaVariables = {
  quotaPlan: choice('SLUICE_QUOTAS', {
    words: ['unlimited', 'free'],
    fallback: 'unlimited',
    description:
      'Daily quotas of an account: `unlimited`, or `free` for the two limits below. On the day on which you set `free`, `GET /v1/users/me` also shows ' +
      'the earlier runs of that day as used, but they do not count.',
  }),
  dailyComputeMs: integer('SLUICE_DAILY_COMPUTE_MS', {
    fallback: 1_800_000,
    max: 2_147_483_647,
    description: 'Run time per account and day, in milliseconds, where `SLUICE_QUOTAS` is `free`.',
  }),
  dailyInvocations: integer('SLUICE_DAILY_INVOCATIONS', {
    fallback: 333,
    max: 2_147_483_647,
    description: 'Runs per account and day where `SLUICE_QUOTAS` is `free`.',
  }),
};

/** null: unlimited */
export const quotasOf = (config: { quotaPlan: string; dailyComputeMs: number; dailyInvocations: number }): DailyQuotas | null =>
  config.quotaPlan === 'unlimited' ? null : { computeMs: config.dailyComputeMs, invocations: config.dailyInvocations };

const DAY_S = 86_400;

/** Until then, a replica may still know what was used before midnight, and the clock of the database, which decides, may be behind. */
const RESET_WITHIN_S = 2;

/** The seconds until quotas are reset everywhere, just after 00:00 UTC. @param now in ms */
export const secondsToReset = (now: number): number => DAY_S - ((Math.floor(now / 1000) - RESET_WITHIN_S) % DAY_S);
