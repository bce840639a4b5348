import type { OutgoingRecord } from './publisher.js';

/** The size of the records that are sent together: the broker rejects a batch larger than the topic's `max.message.bytes`, on every retry. */
const SHARE_BYTES = 256 * 1024;

/** Divides the records, in order, into shares that fit; a record that is larger is sent alone. */
export function shares<Sent extends Pick<OutgoingRecord, 'value'>>(records: Sent[]): Sent[][] {
  const found: Sent[][] = [];
  let bytes = Infinity;
  for (const record of records) {
    const size = record.value?.length ?? 0;
    if (bytes + size > SHARE_BYTES) {
      found.push([]);
      bytes = 0;
    }
    found.at(-1)?.push(record);
    bytes += size;
  }
  return found;
}
