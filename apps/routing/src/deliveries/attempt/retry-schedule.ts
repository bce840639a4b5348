import { JITTER, jittered, type Random, retryPause } from '#retries';

/** The longest pause that a receiver may request. */
export const MAX_RETRY_AFTER_MS = 24 * 3_600_000;
/** The first and the longest pause between probes of a failing receiver, and the shortest first one, because the others are multiples of it. */
const FIRST_PROBE_MS = 5000;
const LAST_PROBE_MS = 5 * 60_000;
const SOONEST_PROBE_MS = 1000;
/** A receiver may request a longer pause for one event than for all. */
export const MAX_REQUESTED_PROBE_MS = 3_600_000;

/** The shortest pause that a receiver can request instead of the schedule's: at least this, and this share of the time since the first attempt. */
const SOONEST = { ms: 1000, share: 0.1 };

export interface FailedAttempt {
  /** The number of this attempt in the schedule. */
  tries: number;
  /** Since the first attempt. */
  sinceFirstMs: number;
  /** The pause that the receiver requested. */
  retryAfterMs: number | null;
  /** It requested that because it is busy (429, 503): it may be shorter than the schedule's. */
  busy?: boolean;
}

export interface NextAttempt {
  /** The number of attempts in the schedule so far. */
  tries: number;
  /** Until the next attempt, in ms; null: there is none. */
  pauseMs: number | null;
}

/**
 * When to make the next attempt. If a busy receiver requests a pause that is shorter than the schedule's, the next attempt does not use up the schedule,
 * which ends when all its pauses have passed. Such pauses grow with the time since the first attempt: a receiver that always requests a second gets
 * about 120 attempts in three days.
 *
 * @param random from 0 to 1
 */
export function nextAttempt(
  schedule: readonly number[],
  { tries, sinceFirstMs, retryAfterMs, busy = false }: FailedAttempt,
  random: number,
): NextAttempt {
  const scheduled = retryPause(schedule, tries, random);
  if (scheduled === null || retryAfterMs === null) return { tries, pauseMs: scheduled };
  // never sooner than the receiver requested
  const later = (ms: number) => Math.round(ms * (1 + JITTER * random));
  const soon = later(Math.max(retryAfterMs, SOONEST.ms, SOONEST.share * sinceFirstMs));
  if (!busy || soon >= scheduled) return { tries, pauseMs: Math.max(later(retryAfterMs), scheduled) };
  const isUsedUp = sinceFirstMs >= scheduleLength(schedule.slice(0, tries));
  // the first attempt always counts: a delivery with none has not been attempted
  return { tries: isUsedUp ? tries : Math.max(1, tries - 1), pauseMs: soon };
}

export interface FailedProbes {
  failedProbes: number;
  /** The pause that the receiver requested in the last response. */
  retryAfterMs: number | null;
}

/** The pause that a `Retry-After` header requests, in ms, at most a day: it contains seconds or a date. Null if it contains neither. */
export function retryAfterMs(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null;
  const text = header.trim();
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : /^[A-Z][a-z]{2}/.test(text) ? Math.max(0, Date.parse(inGmt(text)) - nowMs) : NaN;
  return Number.isNaN(ms) ? null : Math.min(ms, MAX_RETRY_AFTER_MS);
}

/** A date without a time zone, such as one in the form of `asctime`, is in GMT (RFC 9110, 5.6.7). */
const inGmt = (date: string): string => (/(?<![+-]\d{3})\d$/.test(date) ? `${date} GMT` : date);

/**
 * The pause before the next probe of a failing receiver, in ms: not longer than the longest one of the schedule, if that is a second or more, nor shorter
 * than the receiver requested.
 */
export function probePause(schedule: readonly number[], { failedProbes, retryAfterMs }: FailedProbes, random: number): number {
  const first = Math.max(SOONEST_PROBE_MS, Math.min(FIRST_PROBE_MS, schedule[0] ?? FIRST_PROBE_MS));
  const last = Math.min(LAST_PROBE_MS, Math.max(first, ...schedule));
  return Math.max(jittered(Math.min(first * 2 ** failedProbes, last), random), Math.min(retryAfterMs ?? 0, MAX_REQUESTED_PROBE_MS));
}

/** From the first attempt to the last, in ms, without jitter. A delivery that was never attempted is given up after this time. */
export const scheduleLength = (schedule: readonly number[]): number => schedule.reduce((sum, pause) => sum + pause, 0);

/**
 * A receiver that did not fail for this long, in ms, has not failed all the time: it had nothing to accept. More than a receiver may request, and more than
 * the longest pause of the schedule, with its jitter.
 */
export const longestSilence = (schedule: readonly number[]): number => 1.25 * Math.max(MAX_RETRY_AFTER_MS, ...schedule);

export type { Random };
/** Injection token. */
export const RANDOM = Symbol('random');
