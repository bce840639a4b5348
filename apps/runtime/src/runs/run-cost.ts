import { EVENTS_TOPIC } from '#contracts';
import { BYTES_PER_UNIT, EVENT_UNITS, KILL_UNITS, MS_PER_UNIT } from '#fairness';
import { sizeOf } from '#messaging';
import { KILLED, type RunStatus } from '../sandbox/sandbox.js';
import type { DedupeState } from '../source-state/dedupe.js';
import type { RunEffects } from './run-effects.js';
import type { DueRun } from '../run-events/run-events.js';

/** Effects of more bytes are not stored together with those of others, which would wait for them. */
const LARGE_BYTES = 64 * 1024;

type Stored = Pick<RunEffects, 'records' | 'waiting' | 'db' | 'dedupe' | 'attempt'>;

/** About the bytes that are stored, and sent to Kafka. */
function bytesOf({ records, waiting, db, dedupe, attempt }: Stored): number {
  let bytes = bytesOfDb(db) + bytesOfDedupe(dedupe) + (attempt?.next?.event?.length ?? 0);
  for (const record of records) bytes += sizeOf(record);
  for (const { record } of waiting) bytes += sizeOf(record);
  return bytes;
}

/** The state with which a run starts. */
export interface StateBefore {
  db: Record<string, string>;
  dedupe: DedupeState;
}

/** Measured: reading a row costs as much as reading this many bytes. */
const ROW_BYTES = 128;

/** About the bytes that a run reads: its event and the state before, a row for each key. */
export const bytesRead = ({ event, http_body = '' }: Pick<DueRun, 'event' | 'http_body'>, { db, dedupe }: StateBefore): number =>
  event.length + http_body.length + bytesOfDb(db) + Object.keys(db).length * ROW_BYTES + bytesOfDedupe(dedupe);

function bytesOfDb(db: Record<string, string | null>): number {
  let bytes = 0;
  for (const key in db) bytes += key.length + (db[key]?.length ?? 0);
  return bytes;
}

const bytesOfDedupe = (state: DedupeState | null): number =>
  (state?.last?.length ?? 0) + (state?.ids ?? []).reduce((sum, { length }) => sum + length, 0);

export const isLarge = (effects: Stored): boolean => bytesOf(effects) > LARGE_BYTES;

/**
 * The cost of a run in addition to `RUN_UNITS`. Emits, logged lines and errors are events.
 * @param read bytes, of `bytesRead`
 * @param ms for which it has occupied the main thread
 */
export function additionalUnits(status: RunStatus, effects: Stored, { read, ms }: { read: number; ms: number }): number {
  const events = effects.records.filter(({ topic }) => topic === EVENTS_TOPIC).length + effects.waiting.length;
  const bytes = read + bytesOf(effects);
  return events * EVENT_UNITS + bytes / BYTES_PER_UNIT + ms / MS_PER_UNIT + (KILLED.includes(status) ? KILL_UNITS : 0);
}
