import { Injectable } from '@nestjs/common';
import type { EmitterId, WebhookId } from '#contracts';
import { Database, type Transaction } from '#database';
import type { EventContext } from '#events';
import { type Attempt, OVERHEAD_BYTES } from '../delivery.js';
import type { Except, Parked, Taken, TakeOptions } from './delivery-store.js';
import { IS_IN_FLIGHT, REVISION } from './parked-delivery.entity.js';

interface ParkedRow {
  ms: number;
  seq: number;
  emitter_id: EmitterId;
  stream: string;
  emit_id: string;
  time: string | null;
  context: string | null;
  body: Buffer;
  fresh: boolean;
  attempts: Attempt[];
  tries: number;
  since_first_ms: number;
  due_in_ms: number;
  revision: string;
  bytes: number;
}

/** Without a delivery to probe with, `ms` is null. */
type ProbeRow = { in_flight: boolean } & (ParkedRow | { ms: null });

const COLUMNS = 'ms, seq, emitter_id, stream, emit_id, time, context, body, fresh, attempts, tries, parked_at, due_at, scheduled_at';
/** In memory, a text has at most two bytes for each byte in UTF-8. The size of the column is not enough: responses compress well. */
const BYTES = `octet_length(body) + 2 * coalesce(octet_length(context), 0) + 2 * octet_length(attempts::text) + ${OVERHEAD_BYTES}`;
const TAKEN_COLUMNS = `${COLUMNS}, ${REVISION}, CASE WHEN fresh THEN 0 ELSE extract(epoch FROM now() - parked_at)::float8 * 1000 END AS since_first_ms,
  extract(epoch FROM coalesce(scheduled_at, due_at) - now())::float8 * 1000 AS due_in_ms`;
/** The number of fresh deliveries, and of their emitters, that are looked at: there may be many of emitters that are held up. */
const LOOKED_AT = 2000;
const IS_FRESH = 'fresh AND due_at IS NOT NULL';
/** `$4` and `$5`: the places of deliveries in progress. A subquery, because with a join all deliveries of the backlog might be read and sorted. */
const IS_NOT_EXCEPTED = '(ms, seq) NOT IN (SELECT * FROM unnest($4::bigint[], $5::bigint[]))';
/** The same for several webhooks, whose places have their ids in `$2`. */
const IS_NOT_EXCEPTED_ANYWHERE = '(webhook_id, ms, seq) NOT IN (SELECT * FROM unnest($2::text[], $3::bigint[], $4::bigint[]))';
/** The number of deliveries that take turns as probes while none is due. */
const PROBED = 20;

/** The emitters whose first attempts are in flight elsewhere: a delivery whose attempt is in flight is parked before later ones of its emitter. */
const EMITTERS_IN_FLIGHT = `SELECT emitter_id FROM parked_delivery WHERE webhook_id = $1 AND in_flight_until IS NOT NULL AND ${IS_IN_FLIGHT}`;
const FIRST_FRESH = `SELECT * FROM parked_delivery WHERE webhook_id = $1 AND ${IS_FRESH} ORDER BY ms, seq LIMIT ${LOOKED_AT}`;

/**
 * SQL for `WITH RECURSIVE emitter`: the emitters of a webhook's fresh deliveries, in order, and null. A look into the index for each, however many deliveries it
 * has. Each step finds one, so a LIMIT ends the search; with an ORDER BY, all emitters would be found first.
 */
const emittersOf = (webhook: string, condition = 'true'): string => {
  const first = (where: string) =>
    `(SELECT emitter_id FROM parked_delivery WHERE webhook_id = ${webhook} AND ${IS_FRESH} AND ${where} ORDER BY emitter_id, ms, seq LIMIT 1)`;
  return `${first(condition)} UNION ALL SELECT ${first('emitter_id > emitter.emitter_id')} FROM emitter WHERE emitter_id IS NOT NULL`;
};

/**
 * Finds the deliveries of a leased backlog to attempt next; they stay in the table `parked_delivery`. SQL, because each statement reads a few deliveries, by the
 * indexes, however many wait.
 */
@Injectable()
export class NextDeliveriesRepository {
  constructor(private readonly database: Database) {}

  async take(webhookId: WebhookId, limit: number, { bytes = Infinity, except }: TakeOptions = {}): Promise<Taken> {
    const { places = [], emitters = [] } = except ?? {};
    const { rows } = await this.database.query<ParkedRow>({
      name: 'delivery-take',
      text: `
        WITH RECURSIVE held_up AS MATERIALIZED (
          SELECT unnest($6::text[]) AS emitter_id
          UNION
          ${EMITTERS_IN_FLIGHT}
        ), first AS MATERIALIZED (
          -- no fresh one may be left out before a later one
          SELECT ms, seq, max(due_at) OVER (ORDER BY ms, seq) AS due_at, ${BYTES} AS bytes FROM (${FIRST_FRESH}) AS parked_delivery
          WHERE emitter_id NOT IN (SELECT emitter_id FROM held_up) AND ${IS_NOT_EXCEPTED} ORDER BY ms, seq LIMIT $2
        ), emitter AS (
          -- those behind the first ones, if all of these must be left out
          ${emittersOf('$1', 'NOT EXISTS (SELECT FROM first)')}
        ), other AS MATERIALIZED (
          SELECT emitter_id, ms, seq FROM (
            SELECT emitter_id FROM emitter WHERE emitter_id NOT IN (SELECT emitter_id FROM held_up) LIMIT ${LOOKED_AT}
          ) AS emitter CROSS JOIN LATERAL (
            SELECT ms, seq FROM parked_delivery
            WHERE webhook_id = $1 AND emitter_id = emitter.emitter_id AND ${IS_FRESH} AND ${IS_NOT_EXCEPTED} ORDER BY emitter_id, ms, seq LIMIT 1
          ) AS next
        ), later AS (
          SELECT parked_delivery.* FROM (SELECT ms, seq FROM other ORDER BY ms, seq LIMIT 1) AS start CROSS JOIN LATERAL (
            SELECT * FROM parked_delivery
            WHERE webhook_id = $1 AND ${IS_FRESH} AND (ms, seq) >= (start.ms, start.seq) ORDER BY ms, seq LIMIT ${LOOKED_AT}
          ) AS parked_delivery
        ), wanted AS MATERIALIZED (
          SELECT * FROM (
            TABLE first
            UNION ALL
            (SELECT ms, seq, max(due_at) OVER (ORDER BY ms, seq), ${BYTES} FROM later AS parked_delivery
             WHERE emitter_id NOT IN (SELECT emitter_id FROM held_up) AND emitter_id <= (SELECT max(emitter_id) FROM other) AND ${IS_NOT_EXCEPTED}
             ORDER BY ms, seq LIMIT $2)
            UNION ALL
            (SELECT ms, seq, due_at, ${BYTES} FROM parked_delivery
             WHERE webhook_id = $1 AND NOT fresh AND due_at <= now() AND ${IS_NOT_EXCEPTED} ORDER BY due_at LIMIT $2)
          ) AS candidate ORDER BY due_at, ms, seq LIMIT $2
        ), summed AS (
          SELECT ms, seq, bytes, sum(bytes) OVER longest AS total, row_number() OVER longest AS nth FROM wanted WINDOW longest AS (ORDER BY due_at, ms, seq)
        )
        SELECT ${TAKEN_COLUMNS}, bytes FROM parked_delivery JOIN summed USING (ms, seq)
        WHERE webhook_id = $1 AND (total <= $3::float8 OR nth = 1) ORDER BY ms, seq`,
      values: [webhookId, limit, bytes, places.map(({ ms }) => ms), places.map(({ seq }) => seq), emitters],
    });
    const parked = rows.map((row) => parkedOf(webhookId, row));
    return { parked, inFlight: parked.length < limit && (await this.hasInFlight(webhookId)) };
  }

  async findTakeable(backlogs: { webhookId: WebhookId; except: Except }[]): Promise<ReadonlySet<WebhookId>> {
    const places = backlogs.flatMap(({ webhookId, except }) => except.places.map((place) => ({ webhookId, ...place })));
    const emitters = backlogs.flatMap(({ webhookId, except }) => except.emitters.map((emitterId) => ({ webhookId, emitterId })));
    const { rows } = await this.database.query<{ webhook_id: WebhookId }>({
      name: 'delivery-find-takeable',
      text: `
        WITH held_up AS MATERIALIZED (
          SELECT * FROM unnest($5::text[], $6::text[]) AS held_up (webhook_id, emitter_id)
          UNION
          SELECT webhook_id, emitter_id FROM parked_delivery WHERE webhook_id = ANY ($1) AND in_flight_until IS NOT NULL AND ${IS_IN_FLIGHT}
        )
        SELECT webhook_id FROM unnest($1::text[]) AS backlog (webhook_id) WHERE EXISTS (
          SELECT FROM parked_delivery
          WHERE webhook_id = backlog.webhook_id AND NOT fresh AND due_at <= now() AND ${IS_NOT_EXCEPTED_ANYWHERE} ORDER BY due_at OFFSET 0
        ) OR EXISTS (
          WITH RECURSIVE emitter AS (${emittersOf('backlog.webhook_id')})
          SELECT FROM emitter CROSS JOIN LATERAL (
            SELECT FROM parked_delivery
            WHERE webhook_id = backlog.webhook_id AND emitter_id = emitter.emitter_id AND ${IS_FRESH} AND ${IS_NOT_EXCEPTED_ANYWHERE}
            ORDER BY emitter_id, ms, seq LIMIT 1
          ) AS next
          WHERE (backlog.webhook_id, emitter.emitter_id) NOT IN (SELECT webhook_id, emitter_id FROM held_up)
        )`,
      values: [
        backlogs.map(({ webhookId }) => webhookId),
        places.map(({ webhookId }) => webhookId),
        places.map(({ ms }) => ms),
        places.map(({ seq }) => seq),
        emitters.map(({ webhookId }) => webhookId),
        emitters.map(({ emitterId }) => emitterId),
      ],
    });
    return new Set(rows.map(({ webhook_id }) => webhook_id));
  }

  async takeProbe(webhookId: WebhookId, failedProbes: number): Promise<Taken> {
    const { rows } = await this.database.query<ProbeRow>({
      name: 'delivery-take-probe',
      text: `WITH held_up AS MATERIALIZED (${EMITTERS_IN_FLIGHT}), fresh AS (
               SELECT ${COLUMNS} FROM (${FIRST_FRESH}) AS parked_delivery
               WHERE emitter_id NOT IN (SELECT emitter_id FROM held_up) ORDER BY ms, seq LIMIT 1
             ), tried AS (
               SELECT *, row_number() OVER (ORDER BY due_at) - 1 AS nth, count(*) OVER () AS size FROM (
                 SELECT ${COLUMNS} FROM parked_delivery WHERE webhook_id = $1 AND NOT fresh AND due_at IS NOT NULL ORDER BY due_at LIMIT ${PROBED}
               ) AS next
             ), requested AS (
               -- by a user: only then a delivery is due at the beginning of its schedule. Many others may have become due before it
               SELECT * FROM (
                 SELECT ${COLUMNS} FROM parked_delivery WHERE webhook_id = $1 AND NOT fresh AND due_at <= now() ORDER BY due_at DESC LIMIT ${PROBED}
               ) AS recent WHERE due_at = parked_at
             )
             -- one statement, because the attempt in flight may end before a second one
             SELECT EXISTS (SELECT FROM held_up) AS in_flight, ${TAKEN_COLUMNS}, ${BYTES} AS bytes FROM (SELECT) AS always LEFT JOIN (
               SELECT ${COLUMNS}, true AS is_requested FROM requested
               UNION ALL
               SELECT ${COLUMNS}, false FROM fresh
               UNION ALL
               SELECT ${COLUMNS}, false FROM tried WHERE nth = $2 % size OR (nth = 0 AND due_at <= now())
             ) AS candidate ON true ORDER BY is_requested DESC, fresh DESC, due_at LIMIT 1`,
      values: [webhookId, failedProbes],
    });
    const row = rows[0]!;
    return row.ms === null ? { parked: [], inFlight: row.in_flight } : { parked: [parkedOf(webhookId, row)], inFlight: false };
  }

  /** Whether deliveries wait that were never attempted. */
  async hasFresh(transaction: Transaction, webhookId: WebhookId): Promise<boolean> {
    const { rowCount } = await transaction.query(
      'SELECT FROM parked_delivery WHERE webhook_id = $1 AND fresh AND due_at IS NOT NULL LIMIT 1',
      [webhookId],
    );
    return rowCount !== 0;
  }

  private async hasInFlight(webhookId: WebhookId): Promise<boolean> {
    const { rowCount } = await this.database.query({
      name: 'delivery-in-flight',
      text: `${EMITTERS_IN_FLIGHT} LIMIT 1`,
      values: [webhookId],
    });
    return rowCount !== 0;
  }
}

const parkedOf = (
  webhookId: WebhookId,
  {
    ms,
    seq,
    emitter_id,
    stream,
    emit_id,
    time,
    context,
    body,
    fresh,
    attempts,
    tries,
    since_first_ms,
    due_in_ms,
    revision,
    bytes,
  }: ParkedRow,
): Parked => ({
  delivery: {
    webhookId,
    place: { ms, seq },
    emitterId: emitter_id,
    stream,
    emitId: emit_id,
    time: time ?? undefined,
    context: context === null ? undefined : (JSON.parse(context) as EventContext),
    json: body,
  },
  fresh,
  attempts,
  tries,
  sinceFirstMs: since_first_ms,
  dueInMs: due_in_ms,
  revision,
  bytes,
});
