import { type KeptEmit, type KeptEntry, restoreRun, type RunChanges, type RunRequest } from '#contracts';
import { type OutgoingRecord, recordOf, sizeOf } from '#messaging';
import type { NewWaitingEmit } from '../waiting/waiting-emits.repository.js';
import type { RunEffects } from './run-effects.js';

type Changes = Pick<RunEffects, 'db' | 'dedupe' | 'waiting'>;

/** Of a record. Quoted text has up to two or three times as many, and a record may have 4 MiB. */
const PART_BYTES = 512 * 1024;

/** The records from which a restored database gets what the run has changed; none if it has changed nothing. Pauses after each, as `runEffects` does. */
export function* recordsOfChanges(
  { run_id, owner_id, source_id }: Pick<RunRequest, 'run_id' | 'owner_id' | 'source_id'>,
  { db, dedupe, waiting }: Changes,
): Generator<void, OutgoingRecord[]> {
  const parts = partsOf(db, waiting);
  if (parts.length === 0 && dedupe !== null) parts.push({ entries: [], emits: [] });
  const records: OutgoingRecord[] = [];
  for (const [n, { entries, emits }] of parts.entries()) {
    const isLast = n === parts.length - 1;
    const changes = { run_id, owner_id, source_id, db: entries, waiting: emits.map(keptEmit) };
    records.push(recordOf(restoreRun, { ...changes, ...(isLast ? dedupe && { dedupe } : { part: n }) }, owner_id));
    yield;
  }
  return records;
}

/** The changes of a record. The emits keep the order of their calls. */
export const changesOf = ({ source_id, db, dedupe, waiting }: RunChanges): Changes => ({
  db: Object.fromEntries(db.map(({ key, value }) => [key, value])),
  dedupe: dedupe ?? null,
  waiting: waiting.map(({ emit_id, due_at_ms, nth, headers, value }) => ({
    emit_id,
    due_at_ms,
    nth,
    record: { key: source_id, headers, value: Buffer.from(value) },
  })),
});

interface Part {
  entries: KeptEntry[];
  emits: NewWaitingEmit[];
}

function partsOf(db: Changes['db'], waiting: NewWaitingEmit[]): Part[] {
  const parts: Part[] = [];
  let bytes = Infinity;
  const partFor = (size: number): Part => {
    if (bytes + size > PART_BYTES) {
      parts.push({ entries: [], emits: [] });
      bytes = 0;
    }
    bytes += size;
    return parts.at(-1)!;
  };
  for (const [nth, emit] of waiting.entries()) partFor(sizeOf(emit.record)).emits.push({ ...emit, nth });
  for (const [key, value] of Object.entries(db)) partFor(key.length + (value?.length ?? 0)).entries.push({ key, value });
  return parts;
}

const keptEmit = ({ emit_id, due_at_ms, nth = 0, record: { headers, value } }: NewWaitingEmit): KeptEmit => ({
  emit_id,
  due_at_ms,
  nth,
  headers,
  value: value.toString(),
});
