/** The longest pause that a receiver may ask for. */
export const MAX_RETRY_AFTER_MS = 24 * 3_600_000;
/** Each pause varies by this share, so that what failed together doesn't come back together. */
const JITTER = 0.1;

export interface FailedAttempt {
  /** Attempts so far, this one included. */
  attempts: number;
  status: number | null;
  /** The answer's `Retry-After`. */
  retryAfter?: string;
}

/**
 * How long to wait before the next attempt, in ms; null when it was the last one.
 *
 * @param random from 0 to 1
 */
export function nextPause(
  schedule: readonly number[],
  { attempts, status, retryAfter }: FailedAttempt,
  nowMs: number,
  random: number,
): number | null {
  const pause = schedule[attempts - 1];
  if (pause === undefined) return null;
  const wanted = status === 429 || status === 503 ? retryAfterMs(retryAfter, nowMs) : null;
  // never sooner than the receiver has asked for
  if (wanted !== null) return Math.round(Math.min(wanted, MAX_RETRY_AFTER_MS) * (1 + JITTER * random));
  return Math.round(pause * (1 + JITTER * (2 * random - 1)));
}

/** What a `Retry-After` header asks for, in ms: it has seconds or a date. Null when it's neither. */
export function retryAfterMs(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const date = /^[A-Z][a-z]{2}/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(date) ? null : Math.max(0, date - nowMs);
}
