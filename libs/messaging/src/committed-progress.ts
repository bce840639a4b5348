import type { OffsetRange, Progress } from './watermark.js';

/** Kafka takes 4096 characters of metadata with a commit: that many bytes are 3867 of them in base64url, and the numbers come before it. */
const MOST_BYTES = 2900;

/**
 * The metadata of a commit: the clock and, where something has ended above the committed offset, that offset again and the
 * lengths of the runs from there on, in turn of what has not ended and of what has; varints in base64url. What would be too
 * long is left out at the end, and would be done again.
 */
export function progressMetadata({ offset, clock, ended }: Progress): string {
  const bytes: number[] = [];
  let at = offset;
  for (const { from, to } of ended) {
    const run = [...varint(from - at), ...varint(to - from)];
    if (bytes.length + run.length > MOST_BYTES) break;
    bytes.push(...run);
    at = to;
  }
  return bytes.length === 0 ? String(clock) : `${clock} ${offset} ${Buffer.from(bytes).toString('base64url')}`;
}

/** What was committed: `offset` is negative when nothing was, `metadata` may be anybody's. */
export function committedProgress(offset: number, metadata: string | null): Progress {
  const [clock = '', base, runs = ''] = (metadata ?? '').split(' ', 3);
  const low = Math.max(0, offset);
  const ended: OffsetRange[] = [];
  let at = low;
  // of another offset, where a tool has moved the position and copied the metadata, they tell nothing
  const lengths = base === String(low) ? numbers(Buffer.from(runs, 'base64url')) : [];
  for (let index = 0; index + 1 < lengths.length; index += 2) {
    const from = at + (lengths[index] as number);
    at = from + (lengths[index + 1] as number);
    ended.push({ from, to: at });
  }
  return { offset: low, clock: Number(clock) || 0, ended };
}

/** Seven bits to a byte, the lowest first; all but the last have the eighth set. */
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
