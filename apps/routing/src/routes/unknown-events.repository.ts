import { Injectable } from '@nestjs/common';
import { Entity, Index } from 'typeorm';
import type { EmitterId, UserId } from '#contracts';
import { Database, unpackedBytes } from '#database';
import { type DeletedRange, type EventPlace, PARTITIONS } from '#events';
import { DELETED, deletedValues, isDeleted } from '../deliveries/store/deleted-ranges.js';
import { EventRow, type RecordedEvent, valuesOf } from './event-row.entity.js';
import { insertPostponedEvents } from './postponed-events.repository.js';

/** An event that waits until the catalog has replied whether its emitter exists, with its record. */
@Entity('unknown_event')
@Index('unknown_event_of_emitter', ['emitter_id', 'ms', 'seq'])
export class UnknownEventRow extends EventRow {}

/** A row without its record. */
export interface StoredEvent {
  emitterId: EmitterId;
  place: EventPlace;
  /** Of the record. */
  bytes: number;
}

/** The only writer of the table `unknown_event`. SQL, because rows are written, moved and deleted in bulk. */
@Injectable()
export class UnknownEventsRepository {
  constructor(private readonly database: Database) {}

  /** Those that are there already, because their records are read again, stay as they are. */
  async add(events: RecordedEvent[]): Promise<void> {
    await this.database.query({
      name: 'unknown-add',
      text: `INSERT INTO unknown_event (ms, seq, emitter_id, stream, headers, value)
             SELECT ms, seq, emitter_id, stream, headers, ${unpackedBytes('$8')}
             FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::int[], $7::int[])
               AS given (ms, seq, emitter_id, stream, headers, start, length)
             ON CONFLICT (ms, seq) DO NOTHING`,
      values: valuesOf(events),
    });
  }

  /** The first events in these partitions by emitter and place: those behind the given one whose emitter ids are below `end`. */
  async next(after: Omit<StoredEvent, 'bytes'>, end: string, partitions: number[], limit: number): Promise<StoredEvent[]> {
    const { rows } = await this.database.query<{ ms: number; seq: number; emitter_id: EmitterId; bytes: number }>({
      name: 'unknown-next',
      text: `SELECT ms::float8 AS ms, seq::float8 AS seq, emitter_id, octet_length(value) + octet_length(headers) AS bytes FROM unknown_event
             WHERE (emitter_id, ms, seq) > ($1, $2::bigint, $3::bigint) AND emitter_id < $4 AND seq % ${PARTITIONS} = ANY ($5::bigint[])
             ORDER BY emitter_id, unknown_event.ms, unknown_event.seq LIMIT $6`,
      values: [after.emitterId, after.place.ms, after.place.seq, end, partitions, limit],
    });
    return rows.map(({ ms, seq, emitter_id, bytes }) => ({ emitterId: emitter_id, place: { ms, seq }, bytes }));
  }

  /** Postpones the first events of an emitter in these partitions: they belong to its account now. Returns their number. */
  async postpone(emitterId: EmitterId, ownerId: UserId, partitions: number[], limit: number): Promise<number> {
    const { rowCount } = await this.database.query({
      name: 'unknown-postpone',
      text: `WITH moved AS (
               DELETE FROM unknown_event WHERE (ms, seq) IN (
                 SELECT ms, seq FROM unknown_event WHERE emitter_id = $1 AND seq % ${PARTITIONS} = ANY ($3::bigint[]) ORDER BY ms, seq LIMIT $4
               ) RETURNING *
             ), postponed AS (
               ${insertPostponedEvents('SELECT ms, seq, $2, emitter_id, stream, headers, value FROM moved')}
             )
             SELECT FROM moved`,
      values: [emitterId, ownerId, partitions, limit],
    });
    return rowCount ?? 0;
  }

  /** Deletes those of the events whose emitters are still unknown. Returns them. */
  async removeUnknown(events: StoredEvent[]): Promise<StoredEvent[]> {
    const { rows } = await this.database.query<{ nth: number }>({
      name: 'unknown-remove',
      text: `DELETE FROM unknown_event USING unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS given (ms, seq, nth)
             WHERE unknown_event.ms = given.ms AND unknown_event.seq = given.seq AND NOT EXISTS (SELECT FROM emitter WHERE id = emitter_id)
             RETURNING nth::int`,
      values: [events.map(({ place }) => place.ms), events.map(({ place }) => place.seq)],
    });
    return rows.map(({ nth }) => events[nth - 1] as StoredEvent);
  }

  /** Deletes those of deleted ranges. Returns how many there were. */
  async withdraw(ranges: DeletedRange[]): Promise<number> {
    const { rowCount } = await this.database.query({
      name: 'unknown-withdraw',
      text: `DELETE FROM unknown_event USING ${DELETED} WHERE ${isDeleted('unknown_event')}`,
      values: deletedValues(ranges),
    });
    return rowCount ?? 0;
  }
}
