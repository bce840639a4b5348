import { Injectable } from '@nestjs/common';
import {
  type EmitterEvents,
  type EmitterId,
  type EmitterStream,
  type EventDeletion,
  FIND_WITHDRAWN_WITHIN_MS,
  type FindEmittersBetween,
  TimedOut,
  type WaitingEmit,
  type WaitingEmitKey,
} from '#contracts';
import {
  BEFORE_ALL,
  comparePlaces,
  type EventPlace,
  EVERY_STREAM,
  KEPT_EVENTS,
  PARTITIONS,
  type ShownEvent,
  type Stream,
  WAITING_STREAM,
} from '#events';
import { Database } from '#database';
import { emitterSteps, STREAMS } from '../append/index-steps.js';

/** The part of a stream between two places, both exclusive. */
export interface PageWindow {
  newerThan: EventPlace;
  olderThan: EventPlace;
  /** The end at which the page begins if the part has more than `limit` events. */
  from: 'newest' | 'oldest';
  limit: number;
}

export interface ShownPage {
  /** The number of events. */
  total: number;
  /** Newest first. */
  events: ShownEvent[];
  /** Whether more events are in the window, within the limit, than fit into `maxBytes`. */
  cut: boolean;
}

/** Emitters whose events are counted with one statement: together they may have ten million. */
const COUNTED_AT_ONCE = 100;

type Row = { total: number } & ((ShownEvent & { cut: boolean }) | { ms: null });

/** The newest 100 events of the stream, from the index alone. */
const OF_ONE_STREAM = `
  newest AS MATERIALIZED (
    SELECT $2::text AS stream, ms, seq FROM event WHERE emitter_id = $1 AND stream = $2 ORDER BY ms DESC, seq DESC LIMIT ${KEPT_EVENTS}
  )`;

/** The newest 100 events of each stream of the emitter. */
const OF_EACH_STREAM = `${STREAMS}, kept AS (
    SELECT named.stream, of_stream.ms, of_stream.seq
    FROM named CROSS JOIN LATERAL (
      SELECT ms, seq FROM event WHERE emitter_id = $1 AND event.stream = named.stream ORDER BY ms DESC, seq DESC LIMIT ${KEPT_EVENTS}
    ) AS of_stream
  )`;

/** The streams that `*` stands for. */
const OF_EVERY_STREAM = `${OF_EACH_STREAM}, newest AS MATERIALIZED (SELECT * FROM kept WHERE stream NOT LIKE '$%' AND $2::text IS NOT NULL)`;

/**
 * One statement, so one snapshot: the newest events of the stream, those of them in the window, and as many of these as fit. The total
 * is in a row that it returns even without events.
 */
const pageStatement = (newest: string, direction: 'DESC' | 'ASC'): string => `
  WITH RECURSIVE ${newest}, wanted AS MATERIALIZED (
    SELECT stream, ms, seq FROM newest WHERE (ms, seq) < ($3, $4) AND (ms, seq) > ($5, $6) ORDER BY ms ${direction}, seq ${direction} LIMIT $7
  ), found AS (
    SELECT shown.*,
           row_number() OVER nearest AS nth,
           sum(octet_length(event) + coalesce(octet_length(summary), 0) + coalesce(octet_length(item_id), 0)) OVER nearest AS bytes
    FROM wanted CROSS JOIN LATERAL (
      SELECT stream, ms, seq, emit_id, CASE WHEN $8 THEN event ELSE coalesce(truncated, event) END AS event, summary, item_id, item_ts
      FROM event WHERE emitter_id = $1 AND stream = wanted.stream AND ms = wanted.ms AND seq = wanted.seq OFFSET 0
    ) AS shown
    WINDOW nearest AS (ORDER BY shown.ms ${direction}, shown.seq ${direction})
  )
  SELECT (SELECT count(*) FROM newest) AS total, shown.*, (SELECT max(bytes) > $9 AND max(nth) > 1 FROM found) AS cut
  FROM (SELECT) AS one LEFT JOIN (
    SELECT stream, ms, seq, emit_id, event, summary, item_id, item_ts FROM found WHERE nth = 1 OR bytes <= $9
  ) AS shown ON true
  ORDER BY ms DESC, seq DESC`;

const STATEMENTS = {
  one: {
    newest: { name: 'event-page-from-newest', text: pageStatement(OF_ONE_STREAM, 'DESC') },
    oldest: { name: 'event-page-from-oldest', text: pageStatement(OF_ONE_STREAM, 'ASC') },
  },
  every: {
    newest: { name: 'merged-page-from-newest', text: pageStatement(OF_EVERY_STREAM, 'DESC') },
    oldest: { name: 'merged-page-from-oldest', text: pageStatement(OF_EVERY_STREAM, 'ASC') },
  },
};

/** SQL: an event id as a place. */
const placeOf = (id: string): string => `(split_part(${id}, '-', 1)::bigint, split_part(${id}, '-', 2)::bigint)`;

/** SQL. One that ends behind its own place has no end: a client that deletes what it has read, every few seconds, deletes the same range each time. */
const DELETION = `stream, start_id, range_end AS end_id, ms || '-' || seq AS at_id
  FROM deleted_range CROSS JOIN LATERAL (SELECT CASE WHEN ${placeOf('end_id')} < (ms, seq) THEN end_id END AS range_end) AS of_range
  WHERE emitter_id = $1`;
const deletionsStatement = (range: string): string => `
  SELECT DISTINCT ON (${range}) ${DELETION} AND (ms, seq) > ($2, $3) AND (ms, seq) > ($7, $8)
    AND (start_id IS NULL OR ${placeOf('start_id')} <= ($4, $5)) AND (range_end IS NULL OR ${placeOf('range_end')} >= ($2, $3))
  ORDER BY ${range}, ms DESC, seq DESC LIMIT $6`;

const DELETIONS = {
  ofOne: { name: 'event-deletions-of-one', text: deletionsStatement('stream') },
  ofPart: { name: 'event-deletions-of-part', text: deletionsStatement('stream, start_id, range_end') },
};

/** Prepared SQL: the statement is the point. */
@Injectable()
export class EventPagesRepository {
  constructor(private readonly database: Database) {}

  /** A page of a stream or of `*`, with as many events as fit into `maxBytes`, but at least one. `whole`: events over 1 KB are complete. */
  async page(
    emitterId: EmitterId,
    stream: Stream,
    window: PageWindow,
    { whole, maxBytes }: { whole: boolean; maxBytes: number },
  ): Promise<ShownPage> {
    const { olderThan, newerThan, limit } = window;
    const { rows } = await this.database.query<Row>({
      ...STATEMENTS[stream === EVERY_STREAM ? 'every' : 'one'][window.from],
      values: [emitterId, stream, olderThan.ms, olderThan.seq, newerThan.ms, newerThan.seq, limit, whole, maxBytes],
    });
    const events = rows.filter((row) => row.ms !== null);
    return { total: rows[0]?.total ?? 0, events, cut: events[0]?.cut ?? false };
  }

  /** An event of an emitter by its place; undefined if it is not stored. A surplus event is found until its stream is trimmed. */
  async find(emitterId: EmitterId, { ms, seq }: EventPlace): Promise<{ stream: string; emit_id: string; event: Buffer } | undefined> {
    const { rows } = await this.database.query<{ stream: string; emit_id: string; event: Buffer }>({
      name: 'event-find',
      text: 'SELECT stream, emit_id, event FROM event WHERE emitter_id = $1 AND ms = $2 AND seq = $3',
      values: [emitterId, ms, seq],
    });
    return rows[0];
  }

  /**
   * The emitters whose kept events have these offsets of the partition. Reads the whole table, a few emitters at a time: this is rare. Throws TimedOut at
   * the deadline, in ms.
   */
  async emittersBetween(part: FindEmittersBetween, deadline: number): Promise<EmitterEvents[]> {
    const affected: EmitterEvents[] = [];
    for (let after: string | undefined = ''; after !== undefined;) {
      if (Date.now() > deadline) throw new TimedOut('the emitters were not found in time');
      const counts = await this.countBetween(part, after);
      affected.push(...counts.filter(({ events }) => events > 0));
      after = counts.at(-1)?.emitter_id;
    }
    return affected;
  }

  /** The counts of the next emitters. */
  private async countBetween(
    { partition, from_offset, to_offset, since_ms }: FindEmittersBetween,
    after: string,
  ): Promise<EmitterEvents[]> {
    const { rows } = await this.database.query<EmitterEvents>({
      name: 'emitters-between',
      text: `WITH RECURSIVE ${emitterSteps('$5')}, next AS MATERIALIZED (
               SELECT emitter_id FROM walk WHERE emitter_id IS NOT NULL LIMIT ${COUNTED_AT_ONCE}
             )
             SELECT emitter_id, (
               SELECT count(*) FROM event WHERE event.emitter_id = next.emitter_id
                 AND ms >= $1 AND seq % ${PARTITIONS} = $2 AND seq / ${PARTITIONS} >= $3 AND seq / ${PARTITIONS} < $4 AND stream NOT LIKE '$%'
             ) AS events FROM next ORDER BY emitter_id`,
      values: [since_ms, partition, from_offset, to_offset, after],
    });
    return rows;
  }

  /**
   * The deletions that include a place between these two, both inclusive, at most `limit`. One that precedes the first in the log does not. Of deletions of the
   * same range, only the last is returned, which deletes what the others do; of one place, one of each stream.
   *
   * @param after only deletions behind this place
   */
  async deletions(emitterId: EmitterId, from: EventPlace, to: EventPlace, limit: number, after = BEFORE_ALL): Promise<EventDeletion[]> {
    const { rows } = await this.database.query<EventDeletion>({
      ...DELETIONS[comparePlaces(from, to) === 0 ? 'ofOne' : 'ofPart'],
      values: [emitterId, from.ms, from.seq, to.ms, to.seq, limit, after.ms, after.seq],
    });
    return rows;
  }

  /** The last deletion of the emitter's events, whatever it deletes. */
  async lastDeletion(emitterId: EmitterId): Promise<EventDeletion | undefined> {
    const { rows } = await this.database.query<EventDeletion>({
      name: 'event-last-deletion',
      text: `SELECT ${DELETION} ORDER BY ms DESC, seq DESC LIMIT 1`,
      values: [emitterId],
    });
    return rows[0];
  }

  /**
   * The emits among these that are withdrawn: their events were deleted from `$in`, or had left the stream when it was deleted. Of the latter, only their
   * milliseconds are known: a deletion withdraws them only if it covers all events of that time, which the deletion of a single event does not.
   */
  async withdrawn(emits: WaitingEmit[]): Promise<WaitingEmitKey[]> {
    const { rows } = await this.database.transaction(async (transaction) => {
      // the caller gives up then: a statement that nobody waits for must not keep a connection
      await transaction.query(`SET LOCAL statement_timeout = ${FIND_WITHDRAWN_WITHIN_MS}`);
      return transaction.query<WaitingEmitKey>({
        name: 'emits-withdrawn',
        // OFFSET 0: otherwise the planner may read a whole table into a hash, or all deletions of the emitter
        text: `SELECT emitter_id, emit_id FROM unnest($1::text[], $2::text[], $3::bigint[]) AS requested (emitter_id, emit_id, since_ms)
               WHERE EXISTS (SELECT FROM withdrawn_emit w WHERE w.emitter_id = requested.emitter_id AND w.emit_id = requested.emit_id OFFSET 0)
                  OR EXISTS (
                    SELECT FROM (
                      SELECT emitter_id FROM deleted_range
                      WHERE int8range(hashtext(emitter_id), hashtext(emitter_id), '[]') @> hashtext(requested.emitter_id)::bigint
                        AND covered_ms(start_id, end_id, ms) @> since_ms
                        AND (stream IS NULL OR stream = '${WAITING_STREAM}') AND NOT isempty(covered_ms(start_id, end_id, ms))
                      OFFSET 0
                    ) d WHERE d.emitter_id = requested.emitter_id
                  ) AND NOT EXISTS (
                    SELECT FROM event e WHERE e.emitter_id = requested.emitter_id AND e.stream = '${WAITING_STREAM}' AND e.emit_id = requested.emit_id OFFSET 0
                  )`,
        values: [
          emits.map(({ emitter_id }) => emitter_id),
          emits.map(({ emit_id }) => emit_id),
          // nothing is known of one without a time
          emits.map(({ since_ms = Number.MAX_SAFE_INTEGER }) => since_ms),
        ],
      });
    });
    return rows;
  }

  /** The streams that have events, in the order of their names, without `$in`, whose events are not emitted yet. */
  async streams(emitterId: EmitterId): Promise<EmitterStream[]> {
    const { rows } = await this.database.query<EmitterStream>({
      name: 'event-streams',
      text: `WITH RECURSIVE ${OF_EACH_STREAM}
             SELECT stream AS event_name, count(*) AS count, max(ms) / 1000 AS last_event_at
             FROM kept WHERE stream <> '${WAITING_STREAM}' GROUP BY stream ORDER BY stream`,
      values: [emitterId],
    });
    return rows;
  }
}
