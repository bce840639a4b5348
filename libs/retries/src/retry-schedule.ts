import { durations } from '#config';

/** The variable with the pauses between the attempts, in ms. */
export const retrySchedule = durations('SLUICE_RETRY_SCHEDULE', {
  fallback: '5s,5m,30m,2h,5h,10h,14h,20h,24h',
  description:
    'Pauses between the attempts of a failing delivery or run, with jitter; after the last one it has failed. Runs are repeated only if their component declares `retries`.',
});

/** Each pause varies by this share, so that what failed together is not retried together. */
export const JITTER = 0.1;

/** From 0 to 1, like Math.random. Simulations replace it to be repeatable. */
export type Random = () => number;

/** The pause, shorter or longer by the jitter, in whole ms. @param random from 0 to 1 */
export const jittered = (ms: number, random: number): number => Math.round(ms * (1 + JITTER * (2 * random - 1)));

/**
 * The pause before the next attempt, in ms; null after the last one.
 *
 * @param tries the number of attempts so far
 * @param random from 0 to 1
 */
export function retryPause(schedule: readonly number[], tries: number, random: number): number | null {
  const pause = schedule[tries - 1];
  return pause === undefined ? null : jittered(pause, random);
}
