import type { OffsetRange, Progress } from './watermark.js';

/** Kafka limits the metadata of a commit to 4096 characters: 3867 bytes in base64url, after the numbers before them. */
const MAX_BYTES = 2900;

/**
 * The metadata of a commit, separated by spaces: the clock; the offset again; the lengths of the runs from there on, alternating between
 * unfinished and finished records, as varints in base64url; the timestamp that identifies the log; the time that identifies the state of the database
 * (restores.ts). Runs beyond the limit are omitted; their records would be repeated.
 */
export function progressMetadata({ offset, clock, timestamp, ended }: Progress, databaseMs = 0): string {
  const bytes: number[] = [];
  let at = offset;
  for (const { from, to } of ended) {
    const run = [...varint(from - at), ...varint(to - from)];
    if (bytes.length + run.length > MAX_BYTES) break;
    bytes.push(...run);
    at = to;
  }
  return `${clock} ${offset} ${Buffer.from(bytes).toString('base64url')} ${timestamp ?? ''} ${databaseMs || ''}`.trimEnd();
}

/** Reads a commit: `offset` is negative if there is none, and `metadata` may come from any tool. */
export function committedProgress(offset: number, metadata: string | null): Progress & { databaseMs?: number } {
  const [clock = '', base, runs = '', timestamp = '', databaseMs = ''] = (metadata ?? '').split(' ', 5);
  const low = Math.max(0, offset);
  const ended: OffsetRange[] = [];
  let at = low;
  // if a tool has moved the offset and copied the metadata, the rest does not apply
  const applies = base === String(low);
  const lengths = applies ? numbers(Buffer.from(runs, 'base64url')) : [];
  for (let index = 0; index + 1 < lengths.length; index += 2) {
    const from = at + (lengths[index] as number);
    at = from + (lengths[index + 1] as number);
    ended.push({ from, to: at });
  }
  return {
    offset: low,
    clock: Number(clock) || 0,
    timestamp: applies ? Number(timestamp) || undefined : undefined,
    ended,
    databaseMs: applies ? Number(databaseMs) || undefined : undefined,
  };
}

/** Seven bits per byte, lowest first; all bytes but the last have the eighth bit set. */
function varint(value: number): number[] {
  const bytes: number[] = [];
  for (; value > 0x7f; value = Math.floor(value / 0x80)) bytes.push((value % 0x80) | 0x80);
  return [...bytes, value];
}

function numbers(bytes: Buffer): number[] {
  const values: number[] = [];
  let [value, scale] = [0, 1];
  for (const byte of bytes) {
    value += (byte & 0x7f) * scale;
    scale *= 0x80;
    if (byte & 0x80) continue;
    values.push(value);
    [value, scale] = [0, 1];
  }
  return values;
}
