import type { Session } from '#database';
import type { OutgoingRecord } from '#messaging';

/** The NOTIFY channel that wakes the relay. */
export const CHANNEL = 'outbox';

/**
 * Stores records for Kafka in the transaction of the change that they report: both are committed, or neither is. Call it
 * after the changed rows are written (and so locked); then the records of an entity keep the order of its changes.
 */
export async function addToOutbox(transaction: Session, records: OutgoingRecord[]): Promise<void> {
  if (records.length === 0) return;
  await transaction.query({
    name: 'outbox-add',
    text: `WITH added AS (
       INSERT INTO outbox (topic, key, headers, value)
       SELECT topic, key, headers::jsonb, value
       FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[]) WITH ORDINALITY AS record (topic, key, headers, value, n)
       ORDER BY n
     )
     SELECT pg_notify('${CHANNEL}', '')`,
    values: [
      records.map(({ topic }) => topic),
      records.map(({ key }) => key),
      records.map(({ headers }) => JSON.stringify(headers ?? {})),
      records.map(({ value }) => (typeof value === 'string' ? Buffer.from(value) : value)),
    ],
  });
}
