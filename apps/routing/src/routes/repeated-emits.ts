import { LRUCache } from 'lru-cache';
import { OUTBOX_HEADER } from '#contracts';
import type { EmittedEvent } from '#events';
import type { LogRecord } from '#messaging';

const REMEMBERED = 20_000;

/**
 * Recognises records that a relay has sent twice: its process died after Kafka had the records and before they left the outbox. Both copies have the
 * same emit id and, because of their key, the same partition. Only records of an outbox are remembered, and only the newest ones: the second copy
 * follows within seconds.
 */
export class RepeatedEmits {
  private readonly places = new LRUCache<string, number>({ max: REMEMBERED });

  /** True for the second copy. The first one remains the first if it is read again, after a rebalance or a failure. */
  isRepeated(record: LogRecord, { emitterId, stream, emitId, place }: EmittedEvent): boolean {
    if (record.header(OUTBOX_HEADER) === undefined) return false;
    const emit = `${emitterId} ${stream} ${emitId}`;
    const first = this.places.get(emit);
    if (first !== undefined && first < place.seq) return true;
    this.places.set(emit, place.seq);
    return false;
  }
}
