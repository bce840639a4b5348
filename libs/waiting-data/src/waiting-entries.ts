import { Injectable } from '@nestjs/common';
import { Column, Entity, PrimaryColumn, PrimaryGeneratedColumn } from 'typeorm';
import { BYTEWISE_TEXT, Database, Migration, type SchemaPart } from '#database';

/** A change of the rows of one holder in one table. The sum of the entries of a holder is what it has now. */
@Entity('waiting_entry')
export class WaitingEntry {
  @PrimaryColumn(BYTEWISE_TEXT)
  table_name!: string;

  /** The owner of the rows: an account, or a webhook of an account. Empty: an unknown account, because an older version wrote them. */
  @PrimaryColumn(BYTEWISE_TEXT)
  holder!: string;

  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  id!: number;

  /** Negative if rows were deleted. */
  @Column('bigint')
  rows!: number;

  @Column('bigint')
  bytes!: number;
}

class CreateWaitingEntries1796947200007 extends Migration {
  readonly sql = `
    -- The primary key serves "the entries of this holder".
    CREATE TABLE waiting_entry (
      table_name text COLLATE "C" NOT NULL,
      holder     text COLLATE "C" NOT NULL,
      id         bigint GENERATED ALWAYS AS IDENTITY,
      rows       bigint NOT NULL,
      bytes      bigint NOT NULL,
      PRIMARY KEY (table_name, holder, id)
    ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);`;
}

/** The table of the counts, for the schema of an app that has waiting data. */
export const waitingSchema: SchemaPart = { entities: [WaitingEntry], migrations: [CreateWaitingEntries1796947200007] };

/** A table whose rows are counted. */
export interface CountedTable {
  table: string;
  /** SQL: whose a row is. */
  holder: string;
  /** SQL: the size of a row's data, the same whether or not it is compressed. `row`: the prefix of its columns, such as `NEW.`. */
  bytes(row: string): string;
}

/** Of a row beside its data: its other columns, and its entries in indexes. */
const ROW_BYTES = 512;

const sizeOf = ({ bytes }: CountedTable, row: string): string => `(${ROW_BYTES} + ${bytes(row)})`;

/** SQL that adds what the rows of `rows` have, with this sign. */
const entriesOf = (counted: CountedTable, sign: '' | '-', rows: string): string =>
  `INSERT INTO waiting_entry (table_name, holder, rows, bytes)
   SELECT '${counted.table}', ${counted.holder}, ${sign}count(*), ${sign}sum${sizeOf(counted, '')} FROM ${rows} GROUP BY ${counted.holder}`;

/**
 * SQL for a migration: counts the rows that a table has, and from then on each statement that adds, changes or deletes some. Triggers, because a count that each
 * statement had to remember would soon be wrong: deliveries alone are written by eleven statements. A trigger only adds an entry, so statements never
 * wait for each other.
 */
export function countRows(counted: CountedTable): string {
  const { table } = counted;
  return `
    ${countingFunction(counted)}
    CREATE TRIGGER count_added AFTER INSERT ON ${table} REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_${table}();
    CREATE TRIGGER count_deleted AFTER DELETE ON ${table} REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_${table}();
    ${changeTrigger(counted)}
    CREATE TRIGGER count_truncated AFTER TRUNCATE ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION count_${table}();
    ${entriesOf(counted, '', table)};`;
}

/** SQL for a migration: from now on, the rows of a counted table have another size. It must be the same for the present rows. */
export const changeCountedSize = (counted: CountedTable): string => `
    ${countingFunction(counted)}
    DROP TRIGGER count_changed ON ${counted.table};
    ${changeTrigger(counted)}`;

const countingFunction = (counted: CountedTable): string => `
    CREATE OR REPLACE FUNCTION count_${counted.table}() RETURNS trigger LANGUAGE plpgsql AS $count$
    BEGIN
      CASE TG_OP
        WHEN 'INSERT' THEN
          ${entriesOf(counted, '', 'changed')};
        WHEN 'DELETE' THEN
          ${entriesOf(counted, '-', 'changed')};
        WHEN 'UPDATE' THEN
          INSERT INTO waiting_entry (table_name, holder, rows, bytes)
          SELECT '${counted.table}', ${counted.holder}, 0, ${sizeOf(counted, 'NEW.')} - ${sizeOf(counted, 'OLD.')} FROM (SELECT NEW.*) AS changed;
        WHEN 'TRUNCATE' THEN
          DELETE FROM waiting_entry WHERE table_name = '${counted.table}';
      END CASE;
      RETURN NULL;
    END $count$;`;

/** For each row: most updates change no size, and these cost a comparison. */
const changeTrigger = (counted: CountedTable): string =>
  `CREATE TRIGGER count_changed AFTER UPDATE ON ${counted.table} FOR EACH ROW
     WHEN (${sizeOf(counted, 'OLD.')} <> ${sizeOf(counted, 'NEW.')}) EXECUTE FUNCTION count_${counted.table}();`;

/** The waiting data of an account in a table. */
export interface WaitingCount {
  table: string;
  account: string;
  rows: number;
  bytes: number;
}

interface CountRow extends WaitingCount {
  /** Some holder has several entries. */
  several: boolean;
}

/** SQL with the account of a holder. */
export type AccountOf = (holder: string) => string;

/** The only writer of the table `waiting_entry`, beside the triggers. */
@Injectable()
export class WaitingEntriesRepository {
  constructor(private readonly database: Database) {}

  /** Those of all accounts and tables. */
  async counts(accountOf: AccountOf): Promise<WaitingCount[]> {
    const { rows } = await this.database.query<CountRow>({
      name: 'waiting-counts',
      text: `SELECT table_name AS table, account, sum(rows)::float8 AS rows, sum(bytes)::float8 AS bytes, bool_or(several) AS several
             FROM (
               SELECT table_name, ${accountOf('holder')} AS account, sum(rows) AS rows, sum(bytes) AS bytes, count(*) > 1 AS several
               FROM waiting_entry GROUP BY table_name, holder
             ) AS of_holder GROUP BY table_name, account`,
      values: [],
    });
    if (rows.some(({ several }) => several)) await this.merge();
    return rows.map(({ table, account, rows: count, bytes }) => ({ table, account, rows: count, bytes }));
  }

  /** Replaces the entries of each holder by their sum. One replica at a time: two would wait for each other's rows. */
  private async merge(): Promise<void> {
    await this.database.query({
      name: 'waiting-merge',
      text: `WITH several AS MATERIALIZED (
               SELECT table_name, holder FROM waiting_entry WHERE (SELECT pg_try_advisory_xact_lock(hashtext('sluice.waiting')))
               GROUP BY table_name, holder HAVING count(*) > 1
             ), merged AS (
               DELETE FROM waiting_entry AS entry USING several
               WHERE entry.table_name = several.table_name AND entry.holder = several.holder
               RETURNING entry.table_name, entry.holder, entry.rows, entry.bytes
             )
             INSERT INTO waiting_entry (table_name, holder, rows, bytes)
             SELECT table_name, holder, sum(rows), sum(bytes) FROM merged GROUP BY table_name, holder HAVING sum(rows) <> 0 OR sum(bytes) <> 0`,
      values: [],
    });
  }
}
