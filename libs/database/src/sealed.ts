import { isSealed, type SecretBox } from '#secrets';
import { type Connection } from './data-source.js';
import { Database } from './database.js';
import type { Schema, SealedColumn } from './schema.js';

interface Sealed {
  ids: string[];
  text: string;
}

/** As text, whether the column is of type text or json: an encrypted value is a string in both. */
const textOf = ({ column, json }: SealedColumn): string =>
  json ? `CASE json_typeof(${column}) WHEN 'string' THEN ${column} #>> '{}' ELSE ${column}::text END` : column;
const idsOf = ({ key }: SealedColumn): string => `ARRAY[${key.join(', ')}]::text[]`;

/**
 * Tries the keys with the oldest and the newest row of each table, so that a service with a wrong key ends at its start and not at its first use.
 * @throws SecretsKeyProblem
 */
export async function checkSealed(schema: Schema, connection: Connection, box: SecretBox): Promise<void> {
  await withDatabase(schema, connection, async (database) => {
    for (const sealed of schema.sealed) {
      for (const order of ['ASC', 'DESC']) {
        const { rows } = await database.query<Sealed>(
          `SELECT ${idsOf(sealed)} AS ids, ${textOf(sealed)} AS text FROM "${sealed.table}" WHERE ${sealed.column} IS NOT NULL
           ORDER BY ${sealed.key.map((column) => `${column} ${order}`).join(', ')} LIMIT 1`,
        );
        for (const { ids, text } of rows) if (isSealed(text)) box.open(text, sealed.context(...ids));
      }
    }
  });
}

/**
 * Encrypts every value of the schema that is not encrypted under the first key. A value that changes meanwhile is encrypted under that key already.
 * Returns the number of values that it encrypted.
 * @throws SecretsKeyProblem
 */
export async function rotateSealed(schema: Schema, connection: Connection, box: SecretBox): Promise<number> {
  let rotated = 0;
  await withDatabase(schema, connection, async (database) => {
    for (const sealed of schema.sealed) {
      // in pages of the primary key: a table may be larger than the memory
      for (let after: string[] | undefined; ;) {
        const keys = sealed.key.join(', ');
        const { rows } = await database.query<Sealed>(
          `SELECT ${idsOf(sealed)} AS ids, ${textOf(sealed)} AS text FROM "${sealed.table}" WHERE ${sealed.column} IS NOT NULL
           ${after ? `AND (${keys}) > (${after.map((_, n) => `$${n + 1}`).join(', ')})` : ''} ORDER BY ${keys} LIMIT 500`,
          after ?? [],
        );
        for (const { ids, text } of rows) {
          if (box.isCurrent(text)) continue;
          const context = sealed.context(...ids);
          const value = box.seal(isSealed(text) ? box.open(text, context) : text, context);
          const { rowCount } = await database.query(
            `UPDATE "${sealed.table}" SET ${sealed.column} = $1 WHERE ${sealed.key.map((column, n) => `${column} = $${n + 3}`).join(' AND ')}
             AND ${textOf(sealed)} = $2`,
            [sealed.json ? JSON.stringify(value) : value, text, ...ids],
          );
          rotated += rowCount ?? 0;
        }
        if (rows.length === 0) break;
        after = rows.at(-1)?.ids;
      }
    }
  });
  return rotated;
}

async function withDatabase(schema: Schema, connection: Connection, work: (database: Database) => Promise<void>): Promise<void> {
  if (schema.sealed.length === 0) return;
  const database = await Database.of(schema, connection).open();
  try {
    await work(database);
  } finally {
    await database.close();
  }
}
