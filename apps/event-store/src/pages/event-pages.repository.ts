import { Injectable } from '@nestjs/common';
import type { EmitterId, ShownEvent, Stream } from '#contracts';
import { Database } from '#database';
import { KEPT } from '../append/operation.js';
import type { PageWindow } from './page-window.js';

export interface ShownPage {
  /** How many events the stream holds. */
  total: number;
  /** Newest first. */
  events: ShownEvent[];
  /** There are more in the window, within the limit, than fit into `maxBytes`. */
  cut: boolean;
}

type Row = { total: number } & ((ShownEvent & { cut: boolean }) | { ms: null });

/**
 * One statement, so one snapshot: the newest 100 of the stream from the index alone, what of them is in the window, and
 * of these as many as fit. A row comes back even when there are none, for the total.
 */
const pageStatement = (direction: 'DESC' | 'ASC'): string => `
  WITH newest AS MATERIALIZED (
    SELECT ms, seq FROM event WHERE emitter_id = $1 AND stream = $2 ORDER BY ms DESC, seq DESC LIMIT ${KEPT}
  ), wanted AS MATERIALIZED (
    SELECT ms, seq FROM newest WHERE (ms, seq) < ($3, $4) AND (ms, seq) > ($5, $6) ORDER BY ms ${direction}, seq ${direction} LIMIT $7
  ), found AS (
    SELECT shown.*,
           row_number() OVER nearest AS nth,
           sum(octet_length(event) + coalesce(octet_length(summary), 0) + coalesce(octet_length(item_id), 0)) OVER nearest AS bytes
    FROM wanted CROSS JOIN LATERAL (
      SELECT ms, seq, emit_id, CASE WHEN $8 THEN event ELSE coalesce(truncated, event) END AS event, summary, item_id, item_ts
      FROM event WHERE emitter_id = $1 AND stream = $2 AND ms = wanted.ms AND seq = wanted.seq OFFSET 0
    ) AS shown
    WINDOW nearest AS (ORDER BY shown.ms ${direction}, shown.seq ${direction})
  )
  SELECT (SELECT count(*) FROM newest) AS total, shown.*, (SELECT max(bytes) > $9 AND max(nth) > 1 FROM found) AS cut
  FROM (SELECT) AS one LEFT JOIN (
    SELECT ms, seq, emit_id, event, summary, item_id, item_ts FROM found WHERE nth = 1 OR bytes <= $9
  ) AS shown ON true
  ORDER BY ms DESC, seq DESC`;

const STATEMENTS = {
  newest: { name: 'event-page-from-newest', text: pageStatement('DESC') },
  oldest: { name: 'event-page-from-oldest', text: pageStatement('ASC') },
};

/** Prepared SQL: the statement is the point. */
@Injectable()
export class EventPagesRepository {
  constructor(private readonly database: Database) {}

  /** A page of a stream, with as many events as fit into `maxBytes` but at least one; `whole`: events over 1 KB too. */
  async page(
    emitterId: EmitterId,
    stream: Stream,
    window: PageWindow,
    { whole, maxBytes }: { whole: boolean; maxBytes: number },
  ): Promise<ShownPage> {
    const { olderThan, newerThan, limit } = window;
    const { rows } = await this.database.query<Row>({
      ...STATEMENTS[window.from],
      values: [emitterId, stream, olderThan.ms, olderThan.seq, newerThan.ms, newerThan.seq, limit, whole, maxBytes],
    });
    const events = rows.filter((row) => row.ms !== null);
    return { total: rows[0]?.total ?? 0, events, cut: events[0]?.cut ?? false };
  }
}
