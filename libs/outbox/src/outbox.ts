import { Migration, type SchemaPart, type Session } from '#database';
import type { OutgoingRecord } from '#messaging';
import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

/** The NOTIFY channel that wakes the relay. */
export const CHANNEL = 'outbox';

/** SQL that adds the records of `from`, with the columns topic, key, headers (text), value and n, in the order of n; a part of a larger statement. */
export const addedToOutbox = (from: string): string =>
  `INSERT INTO outbox (topic, key, headers, value) SELECT topic, key, headers::jsonb, value FROM ${from} ORDER BY n`;

/** SQL that wakes the relay when the transaction is committed. */
export const WAKE_RELAY = `pg_notify('${CHANNEL}', '')`;

/** The columns of records, as arrays: text, text, text and bytea. */
export const outboxColumns = (records: OutgoingRecord[]): [string[], string[], string[], (Buffer | null)[]] => [
  records.map(({ topic }) => topic),
  records.map(({ key }) => key),
  records.map(({ headers }) => JSON.stringify(headers ?? {})),
  records.map(({ value }) => (typeof value === 'string' ? Buffer.from(value) : value)),
];

/**
 * Stores records for Kafka in the transaction of the change that they report: both are committed, or neither is. Call it
 * after the changed rows are written (and so locked); then the records of an entity keep the order of its changes.
 */
export async function addToOutbox(transaction: Session, records: OutgoingRecord[]): Promise<void> {
  if (records.length === 0) return;
  const from = 'unnest($1::text[], $2::text[], $3::text[], $4::bytea[]) WITH ORDINALITY AS record (topic, key, headers, value, n)';
  await transaction.query({
    name: 'outbox-add',
    text: `WITH added AS (${addedToOutbox(from)}) SELECT ${WAKE_RELAY}`,
    values: outboxColumns(records),
  });
}

/** A record for Kafka that the relay has not sent yet. */
@Entity('outbox')
export class OutboxRecord {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  id!: number;

  @Column('text')
  topic!: string;

  @Column('text')
  key!: string;

  @Column('jsonb')
  headers!: Record<string, string>;

  @Column('bytea', { nullable: true })
  value!: Buffer | null;
}

class CreateOutbox1795305600000 extends Migration {
  readonly sql = `
    CREATE TABLE outbox (
      id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      topic   text NOT NULL,
      key     text NOT NULL,
      headers jsonb NOT NULL,
      value   bytea
    )`;
}

/** The table of the outbox, for the schema of an app that has one. */
export const outboxSchema: SchemaPart = { entities: [OutboxRecord], migrations: [CreateOutbox1795305600000] };
