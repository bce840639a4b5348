import { randomUUID } from 'node:crypto';
import { type Database, isTransient, Lookups } from '#database';
import { type Consumers, eachSecond, type GroupPosition, type Position, type Restores } from '#messaging';
import { counter, type Log } from '#observability';
import { within } from './within.js';

/** Periods that ended longer ago are kept as one. */
const SEPARATE_MS = 30 * 24 * 3_600_000;
/** A database that does not respond must not delay the end of a process for longer. */
const LEAVING_MS = 1000;
/** The time when the statement began: the same in all of its parts, unlike NOW_MS of #database. */
const STATEMENT_MS = '(extract(epoch FROM statement_timestamp()) * 1000)::bigint';

const restored = counter('database_restored_total', 'Times that the database was found in an older state than before.');

interface Row {
  consumer_group: string;
  topic: string;
  partition: number;
  next_offset: number;
  last_ms: number;
  record_ms: number | null;
}

type GroupPartition = Pick<GroupPosition, 'group' | 'topic' | 'partition'>;

const keyOf = ({ group, topic, partition }: GroupPartition): string => JSON.stringify([group, topic, partition]);
const positionOf = ({ offset, clock, timestamp }: Position): Position => ({ offset, clock, timestamp });

/**
 * Extends the period of this process in the database, and stores the positions of the consumers, each second:
 *
 *   the period ends where it ended before ──► it is extended, and the positions are stored
 *   it ends earlier, or is missing ──► the database was restored: the consumers return to the positions in it, and a new period begins
 */
export class DatabaseRestores implements Restores {
  databaseMs = 0;
  private period: string = randomUUID();
  /** The positions in the database, as JSON: an idle service has nothing to store. */
  private stored = '';
  private database: Database | undefined;
  /** An assignment asks for all partitions of a group at once. */
  private readonly positionLookups = new Lookups<string, Position>(
    async () => new Map((await this.positions()).map((each) => [keyOf(each), positionOf(each)])),
  );
  private stopExtending: () => void = () => {};
  private readonly listeners: (() => Promise<void>)[] = [];
  private extending: Promise<void> | undefined;
  /** The last problem that was logged: it is found each second. */
  private problem = '';

  constructor(
    private readonly consumers: Consumers,
    private readonly log: Log,
  ) {}

  /** Call it before the consumers start. */
  async start(database: Database): Promise<void> {
    this.database = database;
    await this.extendPeriod();
    await this.mergeOldPeriods();
    this.stopExtending = eachSecond(() => void this.extendPeriod().catch((error: Error) => this.notExtended(error)));
  }

  /**
   * Calls back whenever it is recognised that the database was restored, for what the service has to do beside reading again. Until the listener's promise
   * resolves, the restore would be recognised again after a crash.
   */
  onRestored(listener: () => Promise<void>): void {
    this.listeners.push(listener);
  }

  async stop(): Promise<void> {
    this.stopExtending();
    await this.extending?.catch(() => {});
  }

  async positionFor({ group, topic, partition }: GroupPartition, databaseMs: number): Promise<Position | undefined> {
    if (databaseMs === 0 || databaseMs === this.databaseMs || (await this.isKnown(databaseMs))) return undefined;
    const position = await this.storedPosition({ group, topic, partition });
    await this.report({ group, topic, partition, offset: position?.offset, committed_ms: databaseMs });
    // the backup is older than the group's first record
    return position ?? { offset: 0, clock: 0 };
  }

  storedPosition(at: GroupPartition): Promise<Position | undefined> {
    return this.positionLookups.get(keyOf(at));
  }

  /** For how long no process of the service used the database, in ms: all such pauses that ended in the last `withinMs`, also the age of a restored backup. */
  async unusedMs(withinMs: number): Promise<number> {
    const result = await this.database?.query<{ ms: number }>({
      name: 'database-period-pauses',
      text: `SELECT coalesce(sum(from_ms - ended_ms), 0)::bigint AS ms FROM (
               SELECT from_ms, max(to_ms) OVER (ORDER BY from_ms ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS ended_ms FROM database_period
             ) AS period WHERE ended_ms < from_ms AND from_ms > ${STATEMENT_MS} - $1::float8`,
      values: [withinMs],
    });
    return result?.rows[0]?.ms ?? 0;
  }

  /** Extends the period once. Several calls at the same time extend it together. */
  extendPeriod(): Promise<void> {
    this.extending ??= this.extendOrBegin().finally(() => (this.extending = undefined));
    return this.extending;
  }

  async beforeLeaving(): Promise<void> {
    const extend = async () => {
      // one that is in progress may have begun before the last effects
      await this.extending?.catch(() => {});
      await this.extendPeriod();
    };
    const late = () => new Error(`the database has not responded within ${LEAVING_MS} ms`);
    await within(LEAVING_MS, extend(), late).catch((error: Error) =>
      this.log.warn({ reason: error.message }, 'database.positions-not-stored'),
    );
  }

  /** An outage ends, and is reported elsewhere. Anything else, such as a missing permission, would hide a restore. */
  private notExtended(error: Error): void {
    if (isTransient(error) || error.message === this.problem) return;
    this.problem = error.message;
    this.log.error({ err: error }, 'database.period-not-extended');
  }

  private async extendOrBegin(): Promise<void> {
    if (!this.database) return;
    // what is done by now is in the database before the end of the period
    const positions = this.consumers.storedPositions();
    if (this.databaseMs > 0 && (await this.tryExtend())) return this.store(this.stillOwned(positions));
    if (this.databaseMs > 0) {
      await this.report({ expected_ms: this.databaseMs });
      this.consumers.rewind(await this.positions());
      this.period = randomUUID();
      this.stored = '';
    }
    const { rows } = await this.database.query<{ to_ms: number }>({
      name: 'database-period-begin',
      text: `INSERT INTO database_period (id, from_ms, to_ms) SELECT $1, ${STATEMENT_MS}, ${STATEMENT_MS} RETURNING to_ms`,
      values: [this.period],
    });
    this.databaseMs = rows[0]?.to_ms ?? 0;
  }

  /** Without the partitions that this process may have lost since: it may have stood still for long during a statement. */
  private stillOwned(positions: GroupPosition[]): GroupPosition[] {
    const owned = new Set(this.consumers.storedPositions().map(keyOf));
    return positions.filter((position) => owned.has(keyOf(position)));
  }

  private async tryExtend(): Promise<boolean> {
    const result = await this.database?.query<{ to_ms: number }>({
      name: 'database-period-extend',
      text: `UPDATE database_period SET to_ms = GREATEST(to_ms + 1, ${STATEMENT_MS}) WHERE id = $1 AND to_ms >= $2 RETURNING to_ms`,
      values: [this.period, this.databaseMs],
    });
    const [row] = result?.rows ?? [];
    if (row) this.databaseMs = row.to_ms;
    return row !== undefined;
  }

  /** Each start adds a period. A group that is idle may have committed long ago, so the old ones are not just deleted. */
  private async mergeOldPeriods(): Promise<void> {
    await this.database?.query({
      name: 'database-period-unite',
      text: `WITH old AS (
               DELETE FROM database_period WHERE to_ms < ${STATEMENT_MS} - $1::bigint
               AND (SELECT count(*) FROM database_period WHERE to_ms < ${STATEMENT_MS} - $1::bigint) > 1
               RETURNING from_ms, to_ms
             )
             INSERT INTO database_period (id, from_ms, to_ms) SELECT gen_random_uuid(), min(from_ms), max(to_ms) FROM old HAVING count(*) > 0`,
      values: [SEPARATE_MS],
    });
  }

  private async isKnown(databaseMs: number): Promise<boolean> {
    const result = await this.database?.query({
      name: 'database-period-find',
      text: 'SELECT 1 FROM database_period WHERE $1 BETWEEN from_ms AND to_ms LIMIT 1',
      values: [databaseMs],
    });
    return (result?.rows.length ?? 1) > 0;
  }

  private async report(fields: object): Promise<void> {
    restored.inc();
    this.log.error(fields, 'database.restored');
    await Promise.all(this.listeners.map((listener) => listener()));
  }

  private async positions(): Promise<GroupPosition[]> {
    const { rows } = (await this.database?.query<Row>('SELECT * FROM consumer_position')) ?? { rows: [] };
    return rows.map((row) => ({
      group: row.consumer_group,
      topic: row.topic,
      partition: row.partition,
      offset: row.next_offset,
      clock: row.last_ms,
      timestamp: row.record_ms ?? undefined,
    }));
  }

  private async store(positions: GroupPosition[]): Promise<void> {
    const stored = JSON.stringify(positions);
    if (positions.length === 0 || stored === this.stored) return;
    await this.database?.query({
      name: 'consumer-position-store',
      text: `INSERT INTO consumer_position AS stored (consumer_group, topic, partition, next_offset, last_ms, record_ms)
             SELECT * FROM unnest($1::text[], $2::text[], $3::integer[], $4::bigint[], $5::bigint[], $6::bigint[])
             ON CONFLICT (consumer_group, topic, partition)
             DO UPDATE SET next_offset = excluded.next_offset, last_ms = excluded.last_ms, record_ms = excluded.record_ms
             WHERE (stored.next_offset, stored.record_ms) IS DISTINCT FROM (excluded.next_offset, excluded.record_ms)`,
      values: [
        positions.map(({ group }) => group),
        positions.map(({ topic }) => topic),
        positions.map(({ partition }) => partition),
        positions.map(({ offset }) => offset),
        positions.map(({ clock }) => clock),
        positions.map(({ timestamp }) => timestamp ?? null),
      ],
    });
    this.stored = stored;
  }
}
