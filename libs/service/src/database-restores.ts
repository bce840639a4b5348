import type { Database } from '#database';
import type { Consumers, GroupPosition, Position, Restores } from '#messaging';
import { counter, type Log } from '#observability';

const EVERY_MS = 1000;

const wentBack = counter('database_restored_total', 'Times that the database was found in an older state than before.');

interface Row {
  consumer_group: string;
  topic: string;
  partition: number;
  next_offset: number;
  last_ms: number;
  record_ms: number | null;
}

/**
 * Writes a growing number and the positions of the consumers to the database, each second:
 *
 *   the number grows ──► the positions are stored
 *   it is lower than before ──► the database was restored: the consumers return to the positions in it
 */
export class DatabaseRestores implements Restores {
  ticks = 0;
  private database: Database | undefined;
  private timer: NodeJS.Timeout | undefined;
  private looking: Promise<void> | undefined;

  constructor(
    private readonly consumers: Consumers,
    private readonly log: Log,
  ) {}

  /** Call it before the consumers start. */
  async start(database: Database): Promise<void> {
    this.database = database;
    await this.look();
    this.timer = setInterval(() => void this.look().catch(() => {}), EVERY_MS).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.looking?.catch(() => {});
  }

  async positionFor(
    { group, topic, partition }: Pick<GroupPosition, 'group' | 'topic' | 'partition'>,
    ticks: number,
  ): Promise<Position | undefined> {
    // another process may have counted further
    if (ticks > this.ticks) await this.look();
    if (ticks <= this.ticks) return undefined;
    const position = (await this.positions()).find((each) => each.group === group && each.topic === topic && each.partition === partition);
    this.report({ group, topic, partition, offset: position?.offset, ticks: this.ticks, expected: ticks });
    return position;
  }

  /** Counts once, and compares. Several calls at the same time count together. */
  look(): Promise<void> {
    this.looking ??= this.count().finally(() => (this.looking = undefined));
    return this.looking;
  }

  private async count(): Promise<void> {
    if (!this.database) return;
    // what is done by now is in the database, before the number
    const positions = this.consumers.positions();
    const { rows } = await this.database.query<{ ticks: number }>({
      name: 'restore-tick',
      text: `INSERT INTO restore_tick (ticks) VALUES (1)
             ON CONFLICT (only_row) DO UPDATE SET ticks = restore_tick.ticks + 1 RETURNING ticks`,
      values: [],
    });
    const ticks = rows[0]?.ticks ?? 0;
    const before = this.ticks;
    if (ticks > before) {
      await this.store(positions);
      this.ticks = ticks;
      return;
    }
    this.report({ ticks, expected: before + 1 });
    this.consumers.rewind(await this.positions());
    this.ticks = ticks;
  }

  private report(fields: object): void {
    wentBack.inc();
    this.log.error(fields, 'database.restored');
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
    if (positions.length === 0) return;
    await this.database?.query({
      name: 'consumer-position-store',
      text: `INSERT INTO consumer_position AS stored (consumer_group, topic, partition, next_offset, last_ms, record_ms)
             SELECT * FROM unnest($1::text[], $2::text[], $3::integer[], $4::bigint[], $5::bigint[], $6::bigint[])
             ON CONFLICT (consumer_group, topic, partition)
             DO UPDATE SET next_offset = excluded.next_offset, last_ms = excluded.last_ms, record_ms = excluded.record_ms
             WHERE stored.next_offset <> excluded.next_offset`,
      values: [
        positions.map(({ group }) => group),
        positions.map(({ topic }) => topic),
        positions.map(({ partition }) => partition),
        positions.map(({ offset }) => offset),
        positions.map(({ clock }) => clock),
        positions.map(({ timestamp }) => timestamp ?? null),
      ],
    });
  }
}
