import { Injectable } from '@nestjs/common';
import { type EmitterId, EVENTS_TOPIC, type StoredPosition } from '#contracts';
import {
  type DeletedRange,
  type EmittedEvent,
  eventIdOf,
  type EventPlace,
  EVERY_STREAM,
  KEPT_EVENTS,
  mergedSpans,
  PARTITIONS,
  type Stream,
  WAITING_STREAM,
} from '#events';
import { Database, type Session, type Transaction } from '#database';
import type { Position } from '#messaging';
import { COPIED_COLUMNS, copyIn, copyRows } from './copy-rows.js';
import { EventProgress } from './event-store.entity.js';
import { emitterSteps, STREAMS } from './index-steps.js';
import { boundsOf, coarseSpans, placesIn, SEQS, spansOf, timesIn } from './deleted-spans.js';
import { type KeptEvent, streamKey } from './replay.js';

export interface StreamKey {
  emitterId: EmitterId;
  stream: Stream;
}

export interface WithdrawnEmit {
  emitterId: EmitterId;
  emitId: string;
}

/** A process that is frozen keeps its locks for as long as the server lets it: meanwhile, a transaction that waits occupies a connection. */
const LOCK_TIMEOUT_MS = 500;
/** As long as the server lets a process be idle in a transaction. */
const FROZEN_AFTER_MS = 20_000;
/** Custom streams of an emitter. */
export const KEPT_STREAMS = 1000;
/** At a time, more than were added: the transaction that removes them holds up its partition. */
const REMOVED_STREAMS = 1000;

/** How many parts of a stream are looked up in the index. Beyond, ranges are joined: it takes less time to read what the index has between them. */
const PROBED_SPANS = 8;

/** Events of deleted emitters, so that an append that needs one of them does not wait longer than LOCK_TIMEOUT_MS. */
const DELETED_TOGETHER = 1000;

/** SQL: the place of an event as a number. */
const PLACE = `(ms * ${SEQS}::numeric + seq)`;
/** SQL: the events of many streams that are meant ($3: in reserved streams, $4: in the others). */
const MEANT = `CASE WHEN stream LIKE '$%' THEN $3::nummultirange ELSE $4::nummultirange END @> ${PLACE}`;
/** Reads only streams that have events in the spans ($5 to $8) with one of the times ($9). */
const NEWEST_OF_MANY = `${STREAMS}, concerned AS MATERIALIZED (
    SELECT named.stream FROM named WHERE named.stream <> ALL ($2) AND EXISTS (
      SELECT FROM unnest($5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[]) AS span (first_ms, first_seq, last_ms, last_seq)
      CROSS JOIN LATERAL (
        SELECT FROM event WHERE emitter_id = $1 AND event.stream = named.stream
          AND (ms, seq) >= (first_ms, first_seq) AND (ms, seq) <= (last_ms, last_seq) AND $9::int8multirange @> ms
        LIMIT 1
      ) AS event_within
    )
  ), newest AS MATERIALIZED (
    SELECT ctid, stream, emit_id, ${MEANT} AS meant, row_number() OVER (PARTITION BY stream ORDER BY ms DESC, seq DESC) AS nth
    FROM event WHERE emitter_id = $1 AND stream = ANY (ARRAY(SELECT stream FROM concerned))
  )`;
const NEWEST_OF_NAMED = `
  newest AS MATERIALIZED (
    SELECT event.ctid, event.stream, emit_id, places @> ${PLACE} AS meant, row_number() OVER (PARTITION BY event.stream ORDER BY ms DESC, seq DESC) AS nth
    FROM unnest($2::text[], $3::nummultirange[]) AS deleted (stream, places) JOIN event ON emitter_id = $1 AND event.stream = deleted.stream
  )`;

/** An emit waits at most a year, and the runtime may be late. */
const WITHDRAWN_KEPT = '400 days';

/**
 * The only writer of the tables `event`, `event_progress`, `deleted_range` and `withdrawn_emit`. Everything that the topic's records change runs in the transaction that
 * moves the partition's position. COPY and prepared SQL: the hot path.
 */
@Injectable()
export class AppendRepository {
  constructor(private readonly database: Database) {}

  transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.database.transaction(work);
  }

  /** The stored positions of the partitions. */
  async positions(partitions: number[]): Promise<Map<number, Position>> {
    const { rows } = await this.database.query<{ partition: number; next_offset: number; last_ms: number; record_ms: number | null }>({
      name: 'progress-read',
      text: `WITH missing AS (
               INSERT INTO event_progress (topic, partition) SELECT $1, unnest($2::int[])
               ON CONFLICT DO NOTHING RETURNING partition, next_offset, last_ms, record_ms
             )
             SELECT partition, next_offset, last_ms, record_ms FROM event_progress WHERE topic = $1 AND partition = ANY($2)
             UNION ALL SELECT * FROM missing`,
      values: [EVENTS_TOPIC, partitions],
    });
    return new Map(
      rows.map((row) => [row.partition, { offset: row.next_offset, clock: row.last_ms, timestamp: row.record_ms ?? undefined }]),
    );
  }

  /** The stored positions of all partitions, for other services. */
  async storedPositions(): Promise<StoredPosition[]> {
    const rows = await this.database.rows(EventProgress).find({ where: { topic: EVENTS_TOPIC }, order: { partition: 'ASC' } });
    return rows.map(({ partition, next_offset, last_ms, record_ms }) => ({
      partition,
      offset: next_offset,
      clock: last_ms,
      timestamp: record_ms ?? undefined,
    }));
  }

  /**
   * Moves the partition's position; false if it has changed, because another process owns the partition now. The first statement of the transaction: until
   * its end, no other process can move the position. From here on, the transaction fails with LOCK_NOT_AVAILABLE instead of waiting for another one.
   */
  async advance(transaction: Transaction, partition: number, before: Position, after: Position): Promise<boolean> {
    const { rowCount } = await transaction.query({
      name: 'progress-advance',
      // the offset alone could belong to another log
      text: `UPDATE event_progress SET next_offset = $5, last_ms = $6, record_ms = $7 FROM set_config('lock_timeout', '${LOCK_TIMEOUT_MS}', true)
             WHERE topic = $1 AND partition = $2 AND next_offset = $3 AND record_ms IS NOT DISTINCT FROM $4`,
      values: [
        ...[EVENTS_TOPIC, partition, before.offset, before.timestamp ?? null],
        ...[after.offset, after.clock, after.timestamp ?? null],
      ],
    });
    return rowCount === 1;
  }

  /**
   * Ends the sessions that hold the position of a partition, and whose process has not sent the rest of a COPY, or read the rest of a result, for 20 s: it is
   * frozen. None of the server's timeouts does so, because such a session is not idle, and cannot be cancelled meanwhile. Returns how many.
   */
  async endFrozen(afterMs = FROZEN_AFTER_MS): Promise<number> {
    const { rowCount } = await this.database.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND usename = current_user AND state = 'active' AND wait_event IN ('ClientRead', 'ClientWrite')
         AND query_start < now() - $1 * interval '1 ms'
         AND pid IN (SELECT pid FROM pg_locks WHERE relation = 'event_progress'::regclass AND mode = 'RowExclusiveLock')`,
      [afterMs],
    );
    return rowCount ?? 0;
  }

  /**
   * Moves the partition's events with a time of `from` or later to just before `to`, in their order, so that the next event, at `to`, is newer. Events
   * that are early enough are not changed. Reads the whole table, which is rare.
   */
  async moveBack(transaction: Transaction, partition: number, { from, to }: { from: number; to: number }): Promise<void> {
    transaction.takeLong();
    await transaction.query({
      name: 'event-move-back',
      text: `WITH late AS MATERIALIZED (
               SELECT DISTINCT emitter_id, stream FROM event WHERE ms >= $2 AND seq % ${PARTITIONS} = $1
             ), ranked AS MATERIALIZED (
               SELECT event.ctid AS row, $3 - row_number() OVER (PARTITION BY emitter_id, stream ORDER BY ms DESC, seq DESC) AS latest
               FROM late JOIN event USING (emitter_id, stream) WHERE seq % ${PARTITIONS} = $1
             )
             UPDATE event SET ms = latest FROM ranked WHERE event.ctid = ranked.row AND ms > latest`,
      values: [partition, from, to],
    });
  }

  /** Fails with UNIQUE_VIOLATION if one of the emits is already stored. */
  async add(transaction: Transaction, events: EmittedEvent[]): Promise<void> {
    if (events.length === 0) return;
    await copyIn(transaction, `COPY event (${COPIED_COLUMNS}) FROM STDIN (FORMAT binary)`, copyRows(events));
  }

  /** The streams of which at least one of these emits is already stored, by `streamKey`. */
  async repeatingStreams(transaction: Transaction, events: EmittedEvent[]): Promise<Set<string>> {
    const { rows } = await transaction.query<{ emitter_id: EmitterId; stream: Stream }>({
      name: 'event-repeating',
      text: `SELECT DISTINCT emitted.emitter_id, emitted.stream
             FROM unnest($1::text[], $2::text[], $3::text[]) AS emitted (emitter_id, stream, emit_id)
             WHERE EXISTS (SELECT FROM event WHERE event.emitter_id = emitted.emitter_id AND event.stream = emitted.stream AND event.emit_id = emitted.emit_id)`,
      values: [events.map(({ emitterId }) => emitterId), events.map(({ stream }) => stream), events.map(({ emitId }) => emitId)],
    });
    return new Set(rows.map((row) => streamKey(row.emitter_id, row.stream)));
  }

  /** Deletes all but the last 100 events of each of these streams. */
  async trim(transaction: Transaction, streams: StreamKey[]): Promise<void> {
    if (streams.length === 0) return;
    await transaction.query({
      name: 'event-trim',
      text: `WITH last AS MATERIALIZED (
               SELECT key.emitter_id, key.stream, oldest.ms, oldest.seq
               FROM unnest($1::text[], $2::text[]) AS key (emitter_id, stream)
               CROSS JOIN LATERAL (
                 SELECT ms, seq FROM event WHERE event.emitter_id = key.emitter_id AND event.stream = key.stream
                 ORDER BY ms DESC, seq DESC OFFSET ${KEPT_EVENTS - 1} LIMIT 1
               ) AS oldest
             )
             DELETE FROM event USING last
             WHERE event.emitter_id = last.emitter_id AND event.stream = last.stream AND (event.ms, event.seq) < (last.ms, last.seq)`,
      values: keyArrays(streams),
    });
  }

  /**
   * Deletes the custom streams of an emitter beyond the 1000 that have the newest events: anyone who may emit can name streams without end. Returns whether
   * there were more.
   *
   * @param added as many streams may be new since the last call
   */
  async limitStreams(transaction: Transaction, emitterId: EmitterId, added: number): Promise<boolean> {
    const { rowCount } = await transaction.query({
      name: 'streams-limit',
      text: `WITH RECURSIVE ${STREAMS}, surplus AS MATERIALIZED (
               SELECT named.stream FROM named CROSS JOIN LATERAL (
                 SELECT ms, seq FROM event WHERE emitter_id = $1 AND event.stream = named.stream ORDER BY ms DESC, seq DESC LIMIT 1
               ) AS newest
               WHERE named.stream <> '' AND named.stream NOT LIKE '$%'
               ORDER BY ms DESC, seq DESC OFFSET ${KEPT_STREAMS} LIMIT ${REMOVED_STREAMS} + $2
             )
             DELETE FROM event USING surplus WHERE event.emitter_id = $1 AND event.stream = surplus.stream`,
      values: [emitterId, added],
    });
    return (rowCount ?? 0) > 0;
  }

  /** The stored events of each of these streams: the last 100, and those that were not trimmed yet. */
  async kept(transaction: Transaction, streams: StreamKey[]): Promise<(KeptEvent & StreamKey)[]> {
    const { rows } = await transaction.query<{ emitter_id: EmitterId; stream: Stream; ms: number; seq: number; emit_id: string }>({
      name: 'event-kept',
      text: `SELECT emitter_id, stream, ms, seq, emit_id
             FROM unnest($1::text[], $2::text[]) AS key (emitter_id, stream) JOIN event USING (emitter_id, stream)`,
      values: keyArrays(streams),
    });
    return rows.map((row) => ({ emitterId: row.emitter_id, stream: row.stream, place: { ms: row.ms, seq: row.seq }, emitId: row.emit_id }));
  }

  async remove(transaction: Transaction, events: (StreamKey & { place: EventPlace })[]): Promise<void> {
    if (events.length === 0) return;
    await transaction.query({
      name: 'event-remove',
      text: `DELETE FROM event USING unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS gone (emitter_id, stream, ms, seq)
             WHERE event.emitter_id = gone.emitter_id AND event.stream = gone.stream AND event.ms = gone.ms AND event.seq = gone.seq`,
      values: [...keyArrays(events), events.map(({ place }) => place.ms), events.map(({ place }) => place.seq)],
    });
  }

  /**
   * Deletes ranges of the kept events from the streams of one emitter, except those of `except`. Also deletes the events beyond the last 100, which would
   * otherwise reappear in place of the deleted ones. The emitter can have a thousand streams: their events are looked up in the index, and read at most once,
   * however many ranges there are. Returns the emit ids of the events deleted from `$in`.
   *
   * @param ranges no range names a stream of `except`
   */
  async removeRanges(transaction: Transaction, emitterId: EmitterId, ranges: DeletedRange[], except: Stream[]): Promise<string[]> {
    const byStream = new Map([...Map.groupBy(ranges, ({ stream }) => stream)].map(([stream, some]) => [stream, spansOf(some)]));
    const [ofAll, ofEvery] = [byStream.get(null) ?? [], byStream.get(EVERY_STREAM) ?? []];
    byStream.delete(null);
    byStream.delete(EVERY_STREAM);
    const many = mergedSpans([...ofAll, ...ofEvery]);
    const removed: string[] = [];
    if (many.length > 0) {
      const values = [except, placesIn(ofAll), placesIn(many), ...boundsOf(coarseSpans(many, PROBED_SPANS)), timesIn(many)];
      removed.push(...(await this.removeMeant(transaction, 'event-remove-of-many', NEWEST_OF_MANY, [emitterId, ...values])));
    }
    if (byStream.size > 0) {
      const values = [[...byStream.keys()], [...byStream.values()].map(placesIn)];
      removed.push(...(await this.removeMeant(transaction, 'event-remove-of-named', NEWEST_OF_NAMED, [emitterId, ...values])));
    }
    return removed;
  }

  /** `newest`: SQL of that name that selects events with `meant` (whether a deletion covers it) and `nth` (its rank in its stream, newest first). */
  private async removeMeant(transaction: Transaction, name: string, newest: string, values: unknown[]): Promise<string[]> {
    const { rows } = await transaction.query<{ emit_id: string }>({
      name,
      // by ctid, because the planner may choose a bad plan for a join of the table with itself
      text: `WITH RECURSIVE ${newest}, removed AS (
               DELETE FROM event WHERE ctid = ANY (ARRAY(SELECT ctid FROM newest WHERE nth > ${KEPT_EVENTS} OR meant))
             )
             SELECT emit_id FROM newest WHERE stream = '${WAITING_STREAM}' AND nth <= ${KEPT_EVENTS} AND meant`,
      values,
    });
    return rows.map((row) => row.emit_id);
  }

  /** Stores which events users have deleted, because the log still has them. A repeated batch stores each deletion once. */
  async noteDeletions(transaction: Transaction, ranges: DeletedRange[]): Promise<void> {
    if (ranges.length === 0) return;
    await transaction.query({
      name: 'deletions-note',
      text: `INSERT INTO deleted_range (emitter_id, ms, seq, stream, start_id, end_id)
             SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[]) ON CONFLICT DO NOTHING`,
      values: [
        ranges.map(({ emitterId }) => emitterId),
        ranges.map(({ place }) => place.ms),
        ranges.map(({ place }) => place.seq),
        ranges.map(({ stream }) => stream),
        ranges.map(({ start }) => start && eventIdOf(start)),
        ranges.map(({ end }) => end && eventIdOf(end)),
      ],
    });
  }

  /** Stores that these emits are withdrawn, so they are not emitted at their `delivery_ts`. */
  async withdraw(transaction: Transaction, emits: WithdrawnEmit[]): Promise<void> {
    if (emits.length === 0) return;
    await transaction.query({
      name: 'emit-withdraw',
      text: `INSERT INTO withdrawn_emit (emitter_id, emit_id) SELECT * FROM unnest($1::text[], $2::text[])
             ON CONFLICT DO NOTHING`,
      values: [emits.map(({ emitterId }) => emitterId), emits.map(({ emitId }) => emitId)],
    });
  }

  /** The ids of emitters with stored events, in order, after the given one. */
  async emittersAfter(emitterId: string, limit: number): Promise<string[]> {
    const { rows } = await this.database.query<{ emitter_id: string }>({
      name: 'emitters-after',
      text: `WITH RECURSIVE ${emitterSteps('$1')}
             SELECT emitter_id FROM walk WHERE emitter_id IS NOT NULL LIMIT $2`,
      values: [emitterId, limit],
    });
    return rows.map((row) => row.emitter_id);
  }

  /**
   * Deletes the emitters' events whose clock is before `ms`, some at a time. Returns how many. Withdrawn emits are kept: the runtime may learn later that
   * the emitter is deleted.
   */
  async deleteBefore(ms: number, emitterIds: string[], session: Session = this.database): Promise<number> {
    for (let deleted = 0; ;) {
      const { rowCount } = await session.query({
        name: 'events-remove-before',
        text: `DELETE FROM event WHERE ctid = ANY (ARRAY(SELECT ctid FROM event WHERE emitter_id = ANY ($1) AND ms < $2 LIMIT ${DELETED_TOGETHER}))`,
        values: [emitterIds, ms],
      });
      deleted += rowCount ?? 0;
      // not if there were fewer: another transaction may have deleted some of them meanwhile
      if (!rowCount) return deleted;
    }
  }

  /** Deletes the stored deletions of events that have left the topic long ago. */
  async deleteOldDeletions(): Promise<void> {
    await this.database.query('DELETE FROM deleted_range WHERE deleted_at < now() - $1::interval', [WITHDRAWN_KEPT]);
  }

  /** Deletes the withdrawn emits that the runtime no longer looks up. */
  async deleteOldWithdrawn(): Promise<void> {
    await this.database.query('DELETE FROM withdrawn_emit WHERE withdrawn_at < now() - $1::interval', [WITHDRAWN_KEPT]);
  }
}

const keyArrays = (streams: StreamKey[]): [string[], string[]] => [
  streams.map(({ emitterId }) => emitterId),
  streams.map(({ stream }) => stream),
];
