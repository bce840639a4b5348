import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A step of a schema. Its class is named after what it does and the time in ms at which it was written: `CreateOutbox1795305600000`. Once released it
 * never changes. A migration cannot be undone: services of the previous version work on the new schema, and an older version needs the backup.
 */
export abstract class Migration implements MigrationInterface {
  protected abstract readonly sql: string;

  async up(database: QueryRunner): Promise<void> {
    await database.query(this.sql);
  }

  down(): Promise<never> {
    return Promise.reject(new Error(`${this.constructor.name} cannot be undone: restore a backup`));
  }
}
