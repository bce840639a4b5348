import type { OutgoingRecord } from './publisher.js';

/** The size of the records that are sent together: the broker rejects a batch larger than the topic's `max.message.bytes`, on every retry. */
const SHARE_BYTES = 256 * 1024;

/** About the bytes of a record's value and headers. */
export function sizeOf({ value, headers }: Pick<OutgoingRecord, 'value' | 'headers'>): number {
  let size = value?.length ?? 0;
  for (const name in headers) size += name.length + (headers[name] as string).length;
  return size;
}

/** The records in their order, as many together as fit into a share; one that is larger goes alone. */
export function shares<Sent extends Pick<OutgoingRecord, 'value' | 'headers'>>(records: Sent[]): Sent[][] {
  const found: Sent[][] = [];
  let bytes = Infinity;
  for (const record of records) {
    const size = sizeOf(record);
    if (bytes + size > SHARE_BYTES) {
      found.push([]);
      bytes = 0;
    }
    found.at(-1)?.push(record);
    bytes += size;
  }
  return found;
}
