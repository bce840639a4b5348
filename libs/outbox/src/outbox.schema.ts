import { Migration, type SchemaPart } from '#database';
import { OutboxRecord } from './outbox.entity.js';

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
