import { Injectable } from '@nestjs/common';
import type { EmitterId, UserId, WebhookId } from '#contracts';
import type { EventContext, EventPlace } from '#events';
import { Database, type Transaction } from '#database';
import type { Attempt, Delivery } from '../delivery.js';
import { WAKE_BACKLOG, wakeBacklogs, wakeBacklogsNow } from './backlogs.repository.js';
import { ParkedDelivery } from './parked-delivery.entity.js';
import type { Parked, Settlement } from './delivery-store.js';
import { MODE, type Mode } from '../../webhooks/webhooks.repository.js';

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
}

const COLUMNS = 'ms, seq, emitter_id, stream, emit_id, time, context, body, fresh, attempts, tries';
/** The bytes that are taken at a time: a body may have a megabyte. */
const TAKEN_BYTES = 8 * 1024 * 1024;
const MS = "interval '1 ms'";

const LISTED = 'ms, seq, emitter_id, attempts, due_at';
/** While the receiver is failing, a delivery waits at least for the next probe. */
const EXPECTED_AT = `CASE WHEN due_at IS NOT NULL THEN greatest(due_at, (SELECT next_due FROM backlog WHERE webhook_id = $2 AND failed_probes IS NOT NULL)) END`;
const OWNED = 'webhook_id = (SELECT id FROM webhook WHERE owner_id = $1 AND id = $2)';
/** A delivery that was given up begins a new retry schedule. It has been attempted, so no other delivery waits for it. */
const DUE_NOW = 'due_at = now(), failed_at = NULL, tries = CASE WHEN due_at IS NULL THEN 0 ELSE tries END, parked_at = now()';
/** Rows per statement: a million rows at once would hold their locks for too long. */
const AT_ONCE = 5000;

/** A parked delivery as its webhook's owner sees it. */
export interface ListedDelivery {
  ms: number;
  seq: number;
  emitter_id: EmitterId;
  attempts: Attempt[];
  /** null: given up. */
  due_at: Date | null;
}

/** A range of a webhook's deliveries; both bounds are exclusive. */
export interface PlaceWindow {
  olderThan: EventPlace;
  newerThan: EventPlace;
  /** The end at which the page begins. */
  from: 'newest' | 'oldest';
  limit: number;
}

interface ExpiredRow {
  webhook_id: WebhookId;
  ms: number;
  seq: number;
  emitter_id: EmitterId;
  stream: string;
  emit_id: string;
  body: Buffer;
}

/** Deletes the parked deliveries of a deleted webhook. */
export async function deleteParkedDeliveries(transaction: Transaction, webhookId: WebhookId): Promise<void> {
  await transaction.rows(ParkedDelivery).delete({ webhook_id: webhookId });
}

/**
 * The only writer of the table `parked_delivery`. A webhook's owner reads and retries deliveries by its methods with an owner; the others serve all
 * owners, because routing's own subscriptions name their webhooks. SQL: batches and range updates on the hot path, and one statement that parks a
 * delivery and wakes its backlog.
 */
@Injectable()
export class ParkedDeliveriesRepository {
  constructor(private readonly database: Database) {}

  async parkFresh(webhookId: WebhookId, deliveries: Delivery[]): Promise<Mode | 'gone'> {
    const { rows } = await this.database.query<{ mode: Mode }>({
      name: 'delivery-park-fresh',
      text: `
        WITH hook AS MATERIALIZED (SELECT id, ${MODE} AS mode FROM webhook WHERE id = $1 FOR SHARE), parked AS (
          INSERT INTO parked_delivery (webhook_id, ms, seq, emitter_id, stream, emit_id, time, context, body, fresh, attempts, tries, due_at)
          SELECT hook.id, d.*, true, '[]', 0, now()
          FROM hook CROSS JOIN unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bytea[]) AS d
          WHERE hook.mode = 'spilled'
          -- the event may be read again after a crash or a rebalance
          ON CONFLICT (webhook_id, ms, seq) DO NOTHING
        ), woken AS (
          ${wakeBacklogs("SELECT id, now() FROM hook WHERE mode = 'spilled'")}
        )
        SELECT mode FROM hook`,
      values: [
        webhookId,
        deliveries.map(({ place }) => place.ms),
        deliveries.map(({ place }) => place.seq),
        deliveries.map(({ emitterId }) => emitterId),
        deliveries.map(({ stream }) => stream),
        deliveries.map(({ emitId }) => emitId),
        deliveries.map(({ time }) => time ?? null),
        deliveries.map(contextText),
        deliveries.map(({ json }) => json),
      ],
    });
    return rows[0]?.mode ?? 'gone';
  }

  /** Adds a delivery whose first attempt is in flight for at most `leaseMs`. */
  async addInFlight(transaction: Transaction, delivery: Delivery, leaseMs: number): Promise<void> {
    const { webhookId, place, emitterId, stream, emitId, time, json } = delivery;
    await transaction.query(
      `INSERT INTO parked_delivery (webhook_id, ms, seq, emitter_id, stream, emit_id, time, context, body, fresh, attempts, tries, due_at, in_flight_until)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, true, '[]', 0, now(), clock_timestamp() + $10 * ${MS}) ON CONFLICT (webhook_id, ms, seq) DO NOTHING`,
      [webhookId, place.ms, place.seq, emitterId, stream, emitId, time ?? null, contextText(delivery), json, leaseMs],
    );
  }

  async parkFailed({ delivery, attempts, tries, pauseMs }: Settlement & { delivered: false }): Promise<void> {
    const { webhookId, place, emitterId, stream, emitId, time, json } = delivery;
    await this.database.query({
      name: 'delivery-park-failed',
      text: `
        WITH hook AS MATERIALIZED (SELECT id FROM webhook WHERE id = $1 FOR SHARE), parked AS (
          INSERT INTO parked_delivery (webhook_id, ms, seq, emitter_id, stream, emit_id, time, context, body, fresh, attempts, tries, due_at, failed_at)
          SELECT id, $2, $3, $4, $5, $6, $7, $8, $9, false, $10, $11, now() + $12 * ${MS}, CASE WHEN $12::float8 IS NULL THEN now() END FROM hook
          ON CONFLICT (webhook_id, ms, seq) DO NOTHING
          RETURNING webhook_id, due_at
        )
        ${wakeBacklogs('SELECT webhook_id, due_at FROM parked WHERE due_at IS NOT NULL')}`,
      values: [
        ...[webhookId, place.ms, place.seq, emitterId, stream, emitId],
        ...[time ?? null, contextText(delivery), json, JSON.stringify(attempts), tries, pauseMs],
      ],
    });
  }

  async settle(webhookId: WebhookId, settlements: Settlement[]): Promise<void> {
    const delivered = settlements.filter((settlement) => settlement.delivered);
    const failed = settlements.filter((settlement) => !settlement.delivered);
    await this.database.query({
      name: 'delivery-settle',
      text: `
        WITH delivered AS (
          DELETE FROM parked_delivery USING unnest($2::bigint[], $3::bigint[]) AS d (ms, seq)
          WHERE webhook_id = $1 AND parked_delivery.ms = d.ms AND parked_delivery.seq = d.seq
        ), failed AS (
          UPDATE parked_delivery
          SET fresh = false, in_flight_until = NULL, attempts = f.attempts::jsonb, tries = f.tries,
              due_at = now() + f.pause * ${MS}, failed_at = CASE WHEN f.pause IS NULL THEN now() END
          FROM unnest($4::bigint[], $5::bigint[], $6::text[], $7::integer[], $8::float8[]) AS f (ms, seq, attempts, tries, pause)
          WHERE webhook_id = $1 AND parked_delivery.ms = f.ms AND parked_delivery.seq = f.seq
        )
        -- the backlog may be waiting for the end of an attempt that was in flight
        ${WAKE_BACKLOG}`,
      values: [
        webhookId,
        delivered.map(({ delivery }) => delivery.place.ms),
        delivered.map(({ delivery }) => delivery.place.seq),
        failed.map(({ delivery }) => delivery.place.ms),
        failed.map(({ delivery }) => delivery.place.seq),
        failed.map(({ attempts }) => JSON.stringify(attempts)),
        failed.map(({ tries }) => tries),
        failed.map(({ pauseMs }) => pauseMs),
      ],
    });
  }

  async take(webhookId: WebhookId, limit: number): Promise<{ parked: Parked[]; inFlight: boolean }> {
    if (await this.hasInFlight(webhookId)) return { parked: [], inFlight: true };
    const { rows } = await this.database.query<ParkedRow>({
      name: 'delivery-take',
      text: `
        WITH wanted AS MATERIALIZED (
          SELECT * FROM (
            (SELECT ms, seq, due_at, octet_length(body) AS bytes FROM parked_delivery
             WHERE webhook_id = $1 AND fresh AND due_at IS NOT NULL ORDER BY ms, seq LIMIT $2)
            UNION ALL
            (SELECT ms, seq, due_at, octet_length(body) FROM parked_delivery
             WHERE webhook_id = $1 AND NOT fresh AND due_at <= now() ORDER BY due_at LIMIT $2)
          ) AS candidate ORDER BY due_at, ms, seq LIMIT $2
        ), summed AS (
          SELECT ms, seq, sum(bytes) OVER longest AS total, row_number() OVER longest AS nth FROM wanted WINDOW longest AS (ORDER BY due_at, ms, seq)
        )
        SELECT ${COLUMNS} FROM parked_delivery
        WHERE webhook_id = $1 AND (ms, seq) IN (SELECT ms, seq FROM summed WHERE total <= ${TAKEN_BYTES} OR nth = 1) ORDER BY ms, seq`,
      values: [webhookId, limit],
    });
    // again: a delivery may have been parked in flight between the two statements, and be among these
    return { parked: rows.map((row) => parkedOf(webhookId, row)), inFlight: await this.hasInFlight(webhookId) };
  }

  async takeProbe(webhookId: WebhookId): Promise<Parked | undefined> {
    const { rows } = await this.database.query<ParkedRow>({
      name: 'delivery-take-probe',
      // a fresh one, or else the one that was attempted longest ago: an event that the receiver rejects must not be the only probe
      text: `SELECT ${COLUMNS} FROM (
               (SELECT ${COLUMNS}, due_at FROM parked_delivery WHERE webhook_id = $1 AND fresh AND due_at IS NOT NULL
                  AND coalesce(in_flight_until, '-infinity') <= now() ORDER BY ms, seq LIMIT 1)
               UNION ALL
               (SELECT ${COLUMNS}, due_at FROM parked_delivery WHERE webhook_id = $1 AND NOT fresh AND due_at IS NOT NULL ORDER BY due_at LIMIT 1)
             ) AS candidate ORDER BY fresh DESC LIMIT 1`,
      values: [webhookId],
    });
    return rows[0] && parkedOf(webhookId, rows[0]);
  }

  /** Gives up all waiting deliveries to a webhook. */
  async giveUpAll(transaction: Transaction, webhookId: WebhookId): Promise<void> {
    await transaction.query(
      'UPDATE parked_delivery SET due_at = NULL, in_flight_until = NULL, failed_at = now() WHERE webhook_id = $1 AND due_at IS NOT NULL',
      [webhookId],
    );
  }

  /** Whether deliveries wait that were never attempted. */
  async hasFresh(transaction: Transaction, webhookId: WebhookId): Promise<boolean> {
    const { rowCount } = await transaction.query(
      'SELECT FROM parked_delivery WHERE webhook_id = $1 AND fresh AND due_at IS NOT NULL LIMIT 1',
      [webhookId],
    );
    return rowCount !== 0;
  }

  /** Newest first. */
  async list(ownerId: UserId, webhookId: WebhookId, { olderThan, newerThan, from, limit }: PlaceWindow): Promise<ListedDelivery[]> {
    const direction = from === 'newest' ? 'DESC' : 'ASC';
    const { rows } = await this.database.query<ListedDelivery>(
      `SELECT ms, seq, emitter_id, attempts, ${EXPECTED_AT} AS due_at FROM parked_delivery WHERE ${OWNED} AND (ms, seq) < ($3, $4) AND (ms, seq) > ($5, $6)
       ORDER BY ms ${direction}, seq ${direction} LIMIT $7`,
      [ownerId, webhookId, olderThan.ms, olderThan.seq, newerThan.ms, newerThan.seq, limit],
    );
    return from === 'newest' ? rows : rows.reverse();
  }

  async count(ownerId: UserId, webhookId: WebhookId): Promise<number> {
    const { rows } = await this.database.query<{ count: number }>(`SELECT count(*)::int AS count FROM parked_delivery WHERE ${OWNED}`, [
      ownerId,
      webhookId,
    ]);
    return rows[0]?.count ?? 0;
  }

  /** Makes a delivery due now. Undefined if it is not parked. */
  async retry(ownerId: UserId, webhookId: WebhookId, { ms, seq }: EventPlace): Promise<ListedDelivery | undefined> {
    const { rows } = await this.database.query<ListedDelivery>(
      `WITH due AS (UPDATE parked_delivery SET ${DUE_NOW} WHERE ${OWNED} AND ms = $3 AND seq = $4 RETURNING webhook_id, ${LISTED}), woken AS (${wakeBacklogsNow('SELECT DISTINCT webhook_id, now() FROM due')})
       SELECT ${LISTED} FROM due`,
      [ownerId, webhookId, ms, seq],
    );
    return rows[0];
  }

  /** Parks a delivery that was made before, to repeat it now, after those that are due. Undefined if the owner has no such webhook. */
  async parkAgain(ownerId: UserId, delivery: Delivery, attempts: Attempt[]): Promise<ListedDelivery | undefined> {
    const { webhookId, place, emitterId, stream, emitId, time, json } = delivery;
    const { rows } = await this.database.query<ListedDelivery>(
      `WITH hook AS MATERIALIZED (SELECT id FROM webhook WHERE owner_id = $1 AND id = $2 FOR SHARE), due AS (
         INSERT INTO parked_delivery (webhook_id, ms, seq, emitter_id, stream, emit_id, time, context, body, fresh, attempts, tries, due_at)
         SELECT id, $3, $4, $5, $6, $7, $8, $9, $10, false, $11, 0, now() FROM hook
         ON CONFLICT (webhook_id, ms, seq) DO UPDATE SET due_at = now(), failed_at = NULL, parked_at = now()
         RETURNING webhook_id, ${LISTED}
       ), woken AS (${wakeBacklogsNow('SELECT DISTINCT webhook_id, now() FROM due')})
       SELECT ${LISTED} FROM due`,
      [
        ...[ownerId, webhookId, place.ms, place.seq, emitterId, stream, emitId],
        ...[time ?? null, contextText(delivery), json, JSON.stringify(attempts)],
      ],
    );
    return rows[0];
  }

  /** Makes all deliveries due now that were given up since then. Returns how many. */
  async recover(ownerId: UserId, webhookId: WebhookId, sinceMs: number): Promise<number> {
    const { rows } = await this.database.query<{ count: number }>(
      `WITH due AS (
         UPDATE parked_delivery SET ${DUE_NOW} WHERE ${OWNED} AND due_at IS NULL AND failed_at >= to_timestamp($3::float8 / 1000) RETURNING webhook_id
       ), woken AS (${wakeBacklogsNow('SELECT DISTINCT webhook_id, now() FROM due')})
       SELECT count(*)::int AS count FROM due`,
      [ownerId, webhookId, sinceMs],
    );
    return rows[0]?.count ?? 0;
  }

  /** Gives up deliveries that have been parked for longer than this. Returns their number and the newest one of each webhook. */
  async giveUpExpired(olderThanMs: number): Promise<{ count: number; examples: Delivery[] }> {
    const { rows } = await this.database.query<ExpiredRow & { count: number }>(
      `WITH expired AS (
         UPDATE parked_delivery SET due_at = NULL, in_flight_until = NULL, failed_at = now()
         WHERE (webhook_id, ms, seq) IN (
           SELECT webhook_id, ms, seq FROM parked_delivery
           WHERE due_at IS NOT NULL AND parked_at < now() - $1 * interval '1 ms' AND coalesce(in_flight_until, '-infinity') < now()
           LIMIT $2 FOR UPDATE SKIP LOCKED
         )
         RETURNING webhook_id, ms, seq, emitter_id, stream, emit_id, body
       )
       SELECT DISTINCT ON (webhook_id) *, (SELECT count(*)::int FROM expired) AS count FROM expired ORDER BY webhook_id, ms DESC, seq DESC`,
      [olderThanMs, AT_ONCE],
    );
    const examples = rows.map(({ webhook_id, ms, seq, emitter_id, stream, emit_id, body }) => ({
      webhookId: webhook_id,
      place: { ms, seq },
      emitterId: emitter_id,
      stream,
      emitId: emit_id,
      json: body,
    }));
    return { count: rows[0]?.count ?? 0, examples };
  }

  /** Deletes deliveries that were given up longer ago than this. Returns how many. */
  async deleteGivenUp(olderThanMs: number): Promise<number> {
    const { rowCount } = await this.database.query(
      `DELETE FROM parked_delivery WHERE (webhook_id, ms, seq) IN (
         SELECT webhook_id, ms, seq FROM parked_delivery WHERE due_at IS NULL AND failed_at < now() - $1 * interval '1 ms' LIMIT $2 FOR UPDATE SKIP LOCKED
       )`,
      [olderThanMs, AT_ONCE],
    );
    return rowCount ?? 0;
  }

  private async hasInFlight(webhookId: WebhookId): Promise<boolean> {
    const { rowCount } = await this.database.query({
      name: 'delivery-in-flight',
      text: 'SELECT FROM parked_delivery WHERE webhook_id = $1 AND in_flight_until > now() LIMIT 1',
      values: [webhookId],
    });
    return rowCount !== 0;
  }
}

const contextText = ({ context }: Delivery): string | null => (context === undefined ? null : JSON.stringify(context));

const parkedOf = (
  webhookId: WebhookId,
  { ms, seq, emitter_id, stream, emit_id, time, context, body, fresh, attempts, tries }: ParkedRow,
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
});
