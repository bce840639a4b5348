import { JITTER, jittered, type Random, retryPause } from '#retries';

/** The longest pause that a receiver may request. */
export const MAX_RETRY_AFTER_MS = 24 * 3_600_000;
/** The first and the longest pause between probes of a failing receiver. */
const FIRST_PROBE_MS = 5000;
const LAST_PROBE_MS = 5 * 60_000;

export interface FailedAttempt {
  /** Attempts so far, this one included. */
  tries: number;
  status: number | null;
  /** The response's `Retry-After`. */
  retryAfter?: string;
}

/**
 * How long to wait before the next attempt, in ms; null when it was the last one.
 *
 * @param random from 0 to 1
 */
export function nextPause(
  schedule: readonly number[],
  { tries, status, retryAfter }: FailedAttempt,
  nowMs: number,
  random: number,
): number | null {
  const pause = retryPause(schedule, tries, random);
  if (pause === null) return null;
  const wanted = status === 429 || status === 503 ? retryAfterMs(retryAfter, nowMs) : null;
  // never sooner than the receiver requested
  if (wanted !== null) return Math.round(Math.min(wanted, MAX_RETRY_AFTER_MS) * (1 + JITTER * random));
  return pause;
}

/** The pause that a `Retry-After` header requests, in ms: it contains seconds or a date. Null if it contains neither. */
export function retryAfterMs(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const date = /^[A-Z][a-z]{2}/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(date) ? null : Math.max(0, date - nowMs);
}

/** The pause before the next probe of a failing receiver, in ms. */
export function probePause(schedule: readonly number[], failedProbes: number, random: number): number {
  const first = Math.min(FIRST_PROBE_MS, schedule[0] ?? FIRST_PROBE_MS);
  return jittered(Math.min(first * 2 ** failedProbes, LAST_PROBE_MS), random);
}

/** From the first attempt to the last, in ms, without jitter. A delivery that was never attempted is given up after this time. */
export const scheduleLength = (schedule: readonly number[]): number => schedule.reduce((sum, pause) => sum + pause, 0);

export type { Random };
/** Injection token. */
export const RANDOM = Symbol('random');
