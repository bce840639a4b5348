import { isDeepStrictEqual } from 'node:util';
import type { PropDefinition } from '@sluice/client';
import { isObject } from './manifest.js';

/** Stands for a secret that is set. */
export const MASK = '••••••••';
/** Props whose values Sluice makes. */
export const MADE = ['$.service.db', '$.interface.http'];
export const TIMER = '$.interface.timer';

/** Compares two values of a prop: as JSON, which has no -0, and those of a timer by their meaning. */
export function isSameValue(definition: PropDefinition | undefined, value: unknown, other: unknown): boolean {
  const form = (each: unknown): unknown => {
    const json: unknown = JSON.parse(JSON.stringify(each ?? null));
    return definition?.type === TIMER ? timerForm(json) : json;
  };
  return isDeepStrictEqual(form(value), form(other));
}

const TIMER_MEMBERS = ['intervalSeconds', 'interval_seconds', 'cron', 'timezone'];

/** A timer is written `{intervalSeconds}` or `{cron}` and returned as `{cron, interval_seconds}`. */
export function timerForm(value: unknown): unknown {
  // the API refuses timers with other members
  if (!isObject(value) || !Object.keys(value).every((key) => TIMER_MEMBERS.includes(key))) return value;
  const { intervalSeconds, interval_seconds, cron, timezone } = value;
  return { seconds: intervalSeconds ?? interval_seconds ?? null, cron: cron || null, timezone: timezone ?? null };
}

/** A timer as users write it, without null. */
export const writtenTimer = (value: unknown): object =>
  Object.fromEntries(
    Object.entries(value ?? {})
      .filter(([, each]) => each !== null)
      .map(([member, each]) => [member === 'interval_seconds' ? 'intervalSeconds' : member, each]),
  );
