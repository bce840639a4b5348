import { type KeptEmit, type KeptEntry, restoreRun, type RunChanges, type RunRequest } from '#contracts';
import { inParts, type OutgoingRecord, recordOf, sizeOf } from '#messaging';
import type { RunEffects } from './run-effects.js';

type Changes = Pick<RunEffects, 'db' | 'dedupe' | 'waiting'>;

/** A change of a run, and about its size. */
interface Change {
  emit?: KeptEmit;
  entry?: KeptEntry;
  size: number;
}

/** In characters, before they are encoded as JSON, which can triple them. A single event or value may have 1 MiB, and a record 4 MiB. */
const PART_SIZE = 512 * 1024;

/** The records from which a restored database gets what the run has changed; none if it has changed nothing. Pauses after each, as `runEffects` does. */
export function* recordsOfChanges(
  { run_id, owner_id, source_id }: Pick<RunRequest, 'run_id' | 'owner_id' | 'source_id'>,
  { db, dedupe, waiting }: Changes,
): Generator<void, OutgoingRecord[]> {
  const emits = waiting.map(({ emit_id, due_at_ms, record: { headers, value } }, nth): Change => ({
    emit: { emit_id, due_at_ms, nth, headers, value: value.toString() },
    size: sizeOf({ headers, value }),
  }));
  const entries = Object.entries(db).map(([key, value]): Change => ({ entry: { key, value }, size: key.length + (value?.length ?? 0) }));
  const parts = inParts([...emits, ...entries], ({ size }) => size, PART_SIZE);
  if (parts.length === 0 && dedupe !== null) parts.push([]);
  const records: OutgoingRecord[] = [];
  for (const [n, part] of parts.entries()) {
    const isLast = n === parts.length - 1;
    const changes = { db: part.flatMap(({ entry }) => entry ?? []), waiting: part.flatMap(({ emit }) => emit ?? []) };
    records.push(
      recordOf(restoreRun, { run_id, owner_id, source_id, ...changes, ...(isLast ? dedupe && { dedupe } : { part: n }) }, owner_id),
    );
    yield;
  }
  return records;
}

/** The changes of a record. The emits keep the order of their calls. */
export const changesOf = ({ source_id, db, dedupe, waiting }: RunChanges): Changes => ({
  db: Object.fromEntries(db.map(({ key, value }) => [key, value])),
  dedupe: dedupe ?? null,
  waiting: waiting.map(({ headers, value, ...emit }) => ({ ...emit, record: { key: source_id, headers, value: Buffer.from(value) } })),
});
