import { Injectable } from '@nestjs/common';
import { Column, Entity, Index } from 'typeorm';
import type { UserId } from '#contracts';
import { BYTEWISE_TEXT, Database, unpackedBytes } from '#database';
import { type DeletedRange, type EventLogRecord, type EventPlace, logPlaceOf, PARTITIONS } from '#events';
import { DELETED, deletedValues, isDeleted } from '../deliveries/store/deleted-ranges.js';
import { EventRow, type RecordedEvent, valuesOf } from './event-row.entity.js';

/** An event whose listeners are found and get it later, with its record. */
@Entity('postponed_event')
@Index('postponed_event_of_account', ['owner_id', 'ms', 'seq'])
@Index('postponed_event_of_emitter', ['emitter_id', 'ms', 'seq'])
// `seq % 4096`, which TypeORM cannot write
@Index('postponed_event_of_partition', { synchronize: false })
export class PostponedEventRow extends EventRow {
  @Column(BYTEWISE_TEXT)
  owner_id!: UserId;
}

/** An event to postpone. */
export interface Postponed extends RecordedEvent {
  ownerId: UserId;
}

/** The records of a partition below it are done: those with a lower offset, and those of an earlier log, which have lower clocks. */
export interface LogPosition {
  partition: number;
  clock: number;
  offset: number;
}

export interface NextOptions {
  /** The `seq` of each event that is not returned. */
  except: number[];
  limit: number;
  bytes: number;
}

type Row = Pick<PostponedEventRow, 'ms' | 'seq' | 'emitter_id' | 'headers' | 'value'>;

/** The columns of `postponed_event_of_partition`. A comparison of these rows, in this order, can use no other index. */
const IN_PARTITION = `seq % ${PARTITIONS}, ms, seq`;
/** The columns of a `LogPosition`, to be compared with these. */
const POSITION = `(partition, clock, "offset" * ${PARTITIONS} + partition)`;
/** Of a record. The headers of an event with a long summary may be much larger than its value. */
const BYTES = '(octet_length(value) + octet_length(headers))';
/** SQL: of each partition, no events are read but those that may be returned. */
export const NEXT = `
  SELECT ms::float8 AS ms, seq::float8 AS seq, emitter_id, headers, value FROM (
    SELECT *, sum(${BYTES}) OVER (ORDER BY ms, seq) - ${BYTES} AS before FROM (
      SELECT event.* FROM unnest($3::bigint[], $4::bigint[], $5::bigint[]) AS position (partition, clock, "offset") CROSS JOIN LATERAL (
        (SELECT ms, seq, emitter_id, headers, value FROM postponed_event
         WHERE owner_id = $1 AND (${IN_PARTITION}) >= (partition, 0, 0) AND (${IN_PARTITION}) < ${POSITION} AND seq <> ALL ($2::bigint[])
         ORDER BY ${IN_PARTITION} LIMIT $6)
        UNION ALL
        -- those from before the clock stepped back
        (SELECT ms, seq, emitter_id, headers, value FROM postponed_event
         WHERE owner_id = $1 AND (${IN_PARTITION}) > ${POSITION} AND (${IN_PARTITION}) < (partition + 1, 0, 0)
           AND seq < "offset" * ${PARTITIONS} + partition AND seq <> ALL ($2::bigint[])
         ORDER BY ${IN_PARTITION} LIMIT $6)
      ) AS event ORDER BY ms, seq LIMIT $6
    ) AS first
  ) AS summed WHERE before < $7 ORDER BY ms, seq`;
export const HAS = `
  SELECT EXISTS (
    SELECT FROM unnest($3::bigint[]) AS partition CROSS JOIN LATERAL (
      SELECT FROM postponed_event
      WHERE owner_id = $1 AND (${IN_PARTITION}) >= (partition, 0, 0) AND (${IN_PARTITION}) < (partition + 1, 0, 0) AND seq <> ALL ($2::bigint[])
      ORDER BY ${IN_PARTITION} LIMIT 1
    ) AS event
  ) AS has`;

/** SQL that adds rows of these columns, alone or in a larger statement. Those that are there already, because their records are read again, stay as they are. */
export const insertPostponedEvents = (rows: string): string =>
  `INSERT INTO postponed_event (ms, seq, owner_id, emitter_id, stream, headers, value) ${rows} ON CONFLICT (ms, seq) DO NOTHING`;

/** The only writer of the table `postponed_event`. SQL, because rows are written and deleted in bulk. */
@Injectable()
export class PostponedEventsRepository {
  constructor(private readonly database: Database) {}

  async add(events: Postponed[]): Promise<void> {
    await this.database.query({
      name: 'postponed-add',
      text: insertPostponedEvents(
        `SELECT ms, seq, owner_id, emitter_id, stream, headers, ${unpackedBytes('$8')}
         FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::int[], $7::int[], $9::text[])
           AS given (ms, seq, emitter_id, stream, headers, start, length, owner_id)`,
      ),
      values: [...valuesOf(events), events.map(({ ownerId }) => ownerId)],
    });
  }

  /**
   * The records of the first events of an account that are below these positions, in order, except some: as many as have these bytes together, at least one.
   */
  async next(ownerId: UserId, below: LogPosition[], { except, limit, bytes }: NextOptions): Promise<EventLogRecord[]> {
    const { rows } = await this.database.query<Row>({
      name: 'postponed-next',
      text: NEXT,
      values: [
        ownerId,
        except,
        below.map(({ partition }) => partition),
        below.map(({ clock }) => clock),
        below.map(({ offset }) => offset),
        limit,
        bytes,
      ],
    });
    return rows.map(recordOf);
  }

  /** Whether an account has events in these partitions, except some. */
  async has(ownerId: UserId, partitions: number[], except: number[]): Promise<boolean> {
    const { rows } = await this.database.query<{ has: boolean }>({
      name: 'postponed-has',
      text: HAS,
      values: [ownerId, except, partitions],
    });
    return rows[0]?.has ?? false;
  }

  /** The accounts that have some. */
  async accounts(): Promise<UserId[]> {
    // one look into the index for each account, however many events it has
    const { rows } = await this.database.query<{ owner_id: UserId }>({
      name: 'postponed-accounts',
      text: `WITH RECURSIVE account AS (
               (SELECT owner_id FROM postponed_event ORDER BY owner_id LIMIT 1)
               UNION ALL
               SELECT (SELECT owner_id FROM postponed_event WHERE owner_id > account.owner_id ORDER BY owner_id LIMIT 1) FROM account
               WHERE account.owner_id IS NOT NULL
             )
             SELECT owner_id FROM account WHERE owner_id IS NOT NULL`,
      values: [],
    });
    return rows.map(({ owner_id }) => owner_id);
  }

  async remove(places: EventPlace[]): Promise<void> {
    await this.database.query({
      name: 'postponed-remove',
      text: 'DELETE FROM postponed_event WHERE (ms, seq) IN (SELECT * FROM unnest($1::bigint[], $2::bigint[]))',
      values: [places.map(({ ms }) => ms), places.map(({ seq }) => seq)],
    });
  }

  /** Deletes those of deleted ranges. Returns how many there were. */
  async withdraw(ranges: DeletedRange[]): Promise<number> {
    const { rowCount } = await this.database.query({
      name: 'postponed-withdraw',
      text: `DELETE FROM postponed_event USING ${DELETED} WHERE ${isDeleted('postponed_event')}`,
      values: deletedValues(ranges),
    });
    return rowCount ?? 0;
  }
}

function recordOf({ ms, seq, emitter_id, headers, value }: Row): EventLogRecord {
  const byName = JSON.parse(headers) as Record<string, string | null>;
  const header = (name: string): string | undefined => (Object.hasOwn(byName, name) ? (byName[name] ?? undefined) : undefined);
  return { ...logPlaceOf({ ms, seq }), clock: ms, key: emitter_id, value, header, headerNames: () => Object.keys(byName) };
}
