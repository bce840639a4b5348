import { Migration, type SchemaPart } from '#database';
import { Emitter } from './emitter.entity.js';

class CreateEmitters1795305600001 extends Migration {
  readonly sql = `
    CREATE TABLE emitter (
      id            text COLLATE "C" PRIMARY KEY,
      owner_id      text COLLATE "C" NOT NULL,
      kind          text NOT NULL,
      active        boolean NOT NULL,
      deleted       boolean NOT NULL,
      version       bigint NOT NULL,
      created_at_ms bigint NOT NULL
    )`;
}

/** The directory's table, for the schema of an app that has one. */
export const emittersSchema: SchemaPart = { entities: [Emitter], migrations: [CreateEmitters1795305600001] };
