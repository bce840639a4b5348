import type { Schema } from '#database';
import { freshDatabase } from './fresh-database.js';

/**
 * The differences between the entities of a schema and the tables that its migrations create: the statements with which TypeORM would bring the tables in
 * line, and the tables without an entity. Does not compare what entities cannot express: storage parameters, the condition of a partial index,
 * settings of the database.
 */
export async function schemaDifferences(schema: Schema): Promise<string[]> {
  const { database, drop } = await freshDatabase(schema);
  try {
    const { dataSource } = database;
    const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
    const { rows } = await database.query<{ tablename: string }>(
      "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> ALL ($1) ORDER BY 1",
      [['migrations', ...dataSource.entityMetadatas.map(({ tableName }) => tableName)]],
    );
    return [...upQueries.map(({ query }) => query), ...rows.map(({ tablename }) => `table ${tablename} has no entity`)];
  } finally {
    await drop();
  }
}
