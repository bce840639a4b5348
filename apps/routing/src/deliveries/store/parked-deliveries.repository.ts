import { Injectable } from '@nestjs/common';
import type { EmitterId, UserId, WebhookId } from '#contracts';
import type { DeletedRange, EventPlace } from '#events';
import { Database, type Session, type Transaction } from '#database';
import { counter } from '#observability';
import type { Attempt, Delivery } from '../delivery.js';
import { coversStreamOf, DELETED, deletedValues, hasDeletedPlace } from './deleted-ranges.js';
import { BacklogsRepository, wakeBacklogs, wakeBacklogsNow, wakeExistingBacklogs } from './backlogs.repository.js';
import { DeletedWebhook, IS_IN_FLIGHT, REVISION } from './parked-delivery.entity.js';
import type { Failed, Settlement } from './delivery-store.js';
import { MODE, type Mode } from '../../webhooks/webhooks.repository.js';

const givenUp = counter('deliveries_given_up_total', 'Deliveries that failed for good.');

/** The columns that a new row gets from its delivery, in the order of the parameters. */
const ADDED: Record<string, (delivery: Delivery) => unknown> = {
  ms: ({ place }) => place.ms,
  seq: ({ place }) => place.seq,
  emitter_id: ({ emitterId }) => emitterId,
  stream: ({ stream }) => stream,
  emit_id: ({ emitId }) => emitId,
  time: ({ time }) => time ?? null,
  context: ({ context }) => (context === undefined ? null : JSON.stringify(context)),
  body: ({ json }) => json,
};
const ADDED_COLUMNS = Object.keys(ADDED).join(', ');
const MS = "interval '1 ms'";

const LISTED = 'ms, seq, emitter_id, stream, attempts, due_at';
/** While the receiver is failing, a delivery waits at least for the next probe. */
const EXPECTED_AT = `CASE WHEN due_at IS NOT NULL THEN greatest(due_at, (SELECT next_due FROM backlog WHERE webhook_id = $2 AND failed_probes IS NOT NULL)) END`;
const OWNED = 'webhook_id = (SELECT id FROM webhook WHERE owner_id = $1 AND id = $2)';
/** The same, and the webhook is not deleted meanwhile: nothing would delete a backlog that is woken then. */
const HELD = 'webhook_id = (SELECT id FROM webhook WHERE owner_id = $1 AND id = $2 FOR KEY SHARE)';
/** A delivery whose event was deleted has no body: it is not attempted again. JSON has at least one byte. */
const IS_KEPT = "(parked_delivery.body <> '')";
/** A delivery that was given up begins a new retry schedule. That of another one is kept, in case the attempt fails; a fresh one keeps its place among others. */
const DUE_NOW =
  'due_at = CASE WHEN fresh AND due_at IS NOT NULL THEN due_at ELSE now() END, scheduled_at = CASE WHEN fresh OR due_at IS NULL THEN NULL ELSE coalesce(scheduled_at, due_at) END, failed_at = NULL, tries = CASE WHEN due_at IS NULL THEN 0 ELSE tries END, parked_at = now()';
/**
 * Of a settlement `f`: a user has requested the delivery since it was taken. `parked_at` alone does not show it: the settlement of a first attempt sets it, too,
 * and is repeated if its response is lost.
 */
const IS_REQUESTED_SINCE = '(parked_at <> f.revision AND (fresh OR due_at = parked_at))';
/** Rows per statement: a million rows at once would hold their locks for too long. */
const AT_ONCE = 5000;
/** Deliveries of a deleted webhook that are deleted at once: other statements about the webhook wait for the first of them, each with a connection. */
const DELETED_AT_ONCE = 1000;
/** Webhooks whose deliveries are given up together: an example of each is read into memory, whose event may have a mebibyte. */
const EXPIRED_WEBHOOKS = 20;
/** `$1` and `$2`: the times of `Expiry`. */
const HAS_EXPIRED = `parked_at < now() - $1 * ${MS} AND due_at < now() - $2 * ${MS} AND NOT ${IS_IN_FLIGHT}`;
/** Those that have waited longest, at most `$3`. */
const OLDEST_EXPIRED = `SELECT webhook_id, ms, seq FROM parked_delivery WHERE ${HAS_EXPIRED} ORDER BY parked_at LIMIT $3`;
const WAS_SUSPENDED = `(
  SELECT suspended OR coalesce(resumed_at > now() - $1 * ${MS}, false) FROM webhook WHERE id = parked_delivery.webhook_id
)`;
const IS_IN_BATCH = '(parked_delivery.webhook_id, parked_delivery.ms, parked_delivery.seq) = (batch.webhook_id, batch.ms, batch.seq)';

/** A parked delivery as its webhook's owner sees it. */
export interface ListedDelivery {
  ms: number;
  seq: number;
  emitter_id: EmitterId;
  stream: string;
  attempts: Attempt[];
  /** null: given up. */
  due_at: Date | null;
}

/** A delivery that is made again, with the attempts that it has already. */
export interface DeliveryAgain {
  delivery: Delivery;
  attempts: Attempt[];
}

/** A range of a webhook's deliveries; both bounds are exclusive. */
export interface PlaceWindow {
  olderThan: EventPlace;
  newerThan: EventPlace;
  /** The end at which the page begins. */
  from: 'newest' | 'oldest';
  limit: number;
}

/** After which time a delivery has waited too long, in ms. */
export interface Expiry {
  /** Since its first attempt, or since it was parked without one. */
  parkedForMs: number;
  /** Since it is due: the receiver may have requested a long pause. */
  dueForMs: number;
}

interface ExpiredRow {
  webhook_id: WebhookId;
  ms: number;
  seq: number;
  emitter_id: EmitterId;
  stream: string;
  emit_id: string;
  body: Buffer;
  attempts: Attempt[];
  /** null: the webhook was deleted. */
  was_suspended: boolean | null;
}

/** A delivery that has waited too long, with its newest attempts, oldest first. */
export type ExpiredDelivery = Delivery & { attempts: Attempt[]; wasSuspended: boolean };

interface Key {
  webhook_id: string;
  ms: number;
  seq: number;
}

/** The last one of a batch of deliveries, and how many of them were changed. */
interface Batch extends Key {
  count: number;
}

/** Changes deliveries in batches, in the order of their keys: `change` takes a batch after a key. Returns how many were changed. */
async function inBatches(after: Key, change: (after: Key) => Promise<Batch | undefined>): Promise<number> {
  let count = 0;
  for (let last = await change(after); last; last = await change(last)) count += last.count;
  return count;
}

/** Deletes the parked deliveries of a deleted webhook: the first of them at once, and the others when the sweeper finds it. */
export async function deleteParkedDeliveries(transaction: Transaction, ownerId: UserId, webhookId: WebhookId): Promise<void> {
  const { rowCount } = await transaction.query({
    name: 'deliveries-delete-first',
    text: `DELETE FROM parked_delivery WHERE webhook_id = $1 AND (ms, seq) IN (SELECT ms, seq FROM parked_delivery WHERE webhook_id = $1 LIMIT $2)`,
    values: [webhookId, DELETED_AT_ONCE],
  });
  if (rowCount === DELETED_AT_ONCE) await transaction.rows(DeletedWebhook).insert({ webhook_id: webhookId, owner_id: ownerId });
}

/**
 * The only writer of the tables `parked_delivery` and `deleted_webhook`. A webhook's owner reads and retries deliveries by its methods with an owner; the others serve all
 * owners, because routing's own subscriptions name their webhooks. SQL: batches and range updates on the hot path, and one statement that parks a
 * delivery and wakes its backlog.
 */
@Injectable()
export class ParkedDeliveriesRepository {
  constructor(
    private readonly database: Database,
    private readonly backlogs: BacklogsRepository,
  ) {}

  async parkFresh(webhookId: WebhookId, deliveries: Delivery[]): Promise<Mode | 'gone'> {
    const { rows } = await this.database.query<{ mode: Mode }>({
      name: 'delivery-park-fresh',
      text: `
        WITH hook AS MATERIALIZED (SELECT id, ${MODE} AS mode FROM webhook WHERE id = $1 FOR SHARE), parked AS (
          INSERT INTO parked_delivery (webhook_id, ${ADDED_COLUMNS}, fresh, attempts, tries, due_at)
          SELECT hook.id, d.*, true, '[]', 0, now()
          FROM hook CROSS JOIN unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bytea[]) AS d
          WHERE hook.mode = 'spilled'
          -- the event may be read again after a crash or a rebalance
          ON CONFLICT (webhook_id, ms, seq) DO NOTHING
        ), woken AS (
          ${wakeBacklogs("SELECT id, now() FROM hook WHERE mode = 'spilled'")}
        )
        SELECT mode FROM hook`,
      values: [webhookId, ...columnsOf(deliveries)],
    });
    const mode = rows[0]?.mode ?? 'gone';
    if (mode === 'spilled') this.backlogs.scheduled(this.database);
    return mode;
  }

  /** Adds a delivery whose first attempt is in flight for at most `leaseMs`. Returns its revision, unless it was parked before. */
  async addInFlight(transaction: Transaction, delivery: Delivery, leaseMs: number): Promise<string | undefined> {
    const { rows } = await transaction.query<{ revision: string }>(
      `INSERT INTO parked_delivery (webhook_id, ${ADDED_COLUMNS}, fresh, attempts, tries, due_at, in_flight_until)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, true, '[]', 0, now(), clock_timestamp() + $10 * ${MS})
       ON CONFLICT (webhook_id, ms, seq) DO NOTHING RETURNING ${REVISION}`,
      [delivery.webhookId, ...valuesOf(delivery), leaseMs],
    );
    return rows[0]?.revision;
  }

  async parkFailed(session: Session, failed: Failed): Promise<Failed[]> {
    const { delivery, attempts, tries, pauseMs } = failed;
    const { rowCount: parked } = await session.query({
      name: 'delivery-park-failed',
      text: `
        WITH hook AS MATERIALIZED (SELECT id FROM webhook WHERE id = $1 FOR SHARE), parked AS (
          INSERT INTO parked_delivery (webhook_id, ${ADDED_COLUMNS}, fresh, attempts, tries, due_at, failed_at)
          SELECT id, $2, $3, $4, $5, $6, $7, $8, $9, false, $10, $11, now() + $12 * ${MS}, CASE WHEN $12::float8 IS NULL THEN now() END FROM hook
          ON CONFLICT (webhook_id, ms, seq) DO NOTHING
          RETURNING webhook_id, due_at
        ), woken AS (
          ${wakeBacklogs('SELECT webhook_id, due_at FROM parked WHERE due_at IS NOT NULL')}
        )
        SELECT FROM parked`,
      values: [delivery.webhookId, ...valuesOf(delivery), JSON.stringify(attempts), tries, pauseMs],
    });
    if (pauseMs !== null) this.backlogs.scheduled(session, pauseMs);
    if (pauseMs !== null || !parked) return [];
    givenUp.inc();
    return [failed];
  }

  async settle(session: Session, webhookId: WebhookId, settlements: Settlement[], leaseId?: string): Promise<Failed[]> {
    const delivered = settlements.filter((settlement) => settlement.delivered);
    const failed = settlements.filter((settlement) => !settlement.delivered);
    const { rows } = await session.query<{ woken: boolean; given_up: number[] }>({
      name: 'delivery-settle',
      text: `
        WITH delivered AS (
          DELETE FROM parked_delivery USING unnest($2::bigint[], $3::bigint[]) AS d (ms, seq)
          WHERE webhook_id = $1 AND parked_delivery.ms = d.ms AND parked_delivery.seq = d.seq
          RETURNING 1
        ), failed AS (
          UPDATE parked_delivery
          SET fresh = false, in_flight_until = NULL, attempts = f.attempts::jsonb,
              parked_at = CASE WHEN ${IS_REQUESTED_SINCE} THEN parked_at WHEN fresh THEN now() ELSE parked_at END,
              tries = CASE WHEN ${IS_REQUESTED_SINCE} THEN parked_delivery.tries ELSE f.tries END,
              scheduled_at = CASE WHEN ${IS_REQUESTED_SINCE} THEN scheduled_at END,
              -- one that was given up meanwhile, stays so
              due_at = CASE WHEN due_at IS NULL THEN NULL WHEN ${IS_REQUESTED_SINCE} THEN parked_at ELSE now() + f.pause * ${MS} END,
              failed_at = CASE WHEN due_at IS NULL THEN coalesce(failed_at, now()) WHEN ${IS_REQUESTED_SINCE} THEN NULL WHEN f.pause IS NULL THEN now() END
          FROM unnest($4::bigint[], $5::bigint[], $6::text[], $7::integer[], $8::float8[], $10::timestamptz[]) WITH ORDINALITY
            AS f (ms, seq, attempts, tries, pause, revision, nth)
          WHERE webhook_id = $1 AND parked_delivery.ms = f.ms AND parked_delivery.seq = f.seq AND ${IS_KEPT}
            AND CASE WHEN $9::text IS NULL THEN fresh ELSE EXISTS (SELECT FROM backlog WHERE webhook_id = $1 AND lease_id = $9) END
          RETURNING f.nth, f.pause, due_at
        ), woken AS (
          -- the backlog may be waiting for the end of an attempt that was in flight. It is locked after the deliveries, which are counted for this order
          ${wakeExistingBacklogs('= $1')} AND (SELECT count(*) FROM delivered) + (SELECT count(*) FROM failed) >= 0 RETURNING 1
        )
        SELECT EXISTS (SELECT FROM woken) AS woken,
          ARRAY(SELECT nth::integer FROM failed WHERE pause IS NULL AND due_at IS NULL ORDER BY nth) AS given_up`,
      values: [
        webhookId,
        delivered.map(({ delivery }) => delivery.place.ms),
        delivered.map(({ delivery }) => delivery.place.seq),
        failed.map(({ delivery }) => delivery.place.ms),
        failed.map(({ delivery }) => delivery.place.seq),
        failed.map(({ attempts }) => JSON.stringify(attempts)),
        failed.map(({ tries }) => tries),
        failed.map(({ pauseMs }) => pauseMs),
        leaseId,
        failed.map(({ revision }) => revision),
      ],
    });
    const { woken, given_up } = rows[0]!;
    givenUp.inc(given_up.length);
    if (woken) this.backlogs.scheduled(session);
    return given_up.map((nth) => failed[nth - 1]!);
  }

  /** Gives up waiting deliveries to a disabled webhook. Returns how many: 0 if none is left, or its owner has switched it on. */
  async giveUp(webhookId: WebhookId): Promise<number> {
    const { rowCount } = await this.database.query(
      `WITH hook AS MATERIALIZED (SELECT id FROM webhook WHERE id = $1 AND giving_up FOR SHARE), batch AS MATERIALIZED (
         (SELECT webhook_id, ms, seq FROM parked_delivery
          WHERE webhook_id = (SELECT id FROM hook) AND fresh AND due_at IS NOT NULL ORDER BY ms, seq LIMIT $2)
         UNION ALL
         (SELECT webhook_id, ms, seq FROM parked_delivery
          WHERE webhook_id = (SELECT id FROM hook) AND NOT fresh AND due_at IS NOT NULL ORDER BY due_at LIMIT $2)
       )
       UPDATE parked_delivery SET due_at = NULL, failed_at = now() FROM batch WHERE ${IS_IN_BATCH} AND due_at IS NOT NULL`,
      [webhookId, AT_ONCE],
    );
    givenUp.inc(rowCount ?? 0);
    return rowCount ?? 0;
  }

  /** Newest first. */
  async list(ownerId: UserId, webhookId: WebhookId, { olderThan, newerThan, from, limit }: PlaceWindow): Promise<ListedDelivery[]> {
    const direction = from === 'newest' ? 'DESC' : 'ASC';
    const { rows } = await this.database.query<ListedDelivery>(
      `SELECT ms, seq, emitter_id, stream, attempts, ${EXPECTED_AT} AS due_at FROM parked_delivery WHERE ${OWNED} AND (ms, seq) < ($3, $4) AND (ms, seq) > ($5, $6)
       ORDER BY ms ${direction}, seq ${direction} LIMIT $7`,
      [ownerId, webhookId, olderThan.ms, olderThan.seq, newerThan.ms, newerThan.seq, limit],
    );
    return from === 'newest' ? rows : rows.reverse();
  }

  /** The number of deliveries that are parked or among these. */
  async count(ownerId: UserId, webhookId: WebhookId, others: EventPlace[]): Promise<number> {
    const { rows } = await this.database.query<{ count: number }>(
      `SELECT (SELECT count(*) FROM parked_delivery WHERE ${OWNED})::int + (
         SELECT count(*) FROM (SELECT DISTINCT ms, seq FROM unnest($3::bigint[], $4::bigint[]) AS other (ms, seq)) AS other
         WHERE NOT EXISTS (SELECT FROM parked_delivery p WHERE p.webhook_id = $2 AND p.ms = other.ms AND p.seq = other.seq)
       )::int AS count`,
      [ownerId, webhookId, others.map(({ ms }) => ms), others.map(({ seq }) => seq)],
    );
    return rows[0]?.count ?? 0;
  }

  async find(ownerId: UserId, webhookId: WebhookId, { ms, seq }: EventPlace): Promise<ListedDelivery | undefined> {
    const { rows } = await this.database.query<ListedDelivery>(
      `SELECT ${LISTED} FROM parked_delivery WHERE ${OWNED} AND ms = $3 AND seq = $4`,
      [ownerId, webhookId, ms, seq],
    );
    return rows[0];
  }

  /** Makes a delivery due now. Undefined if it is not parked. */
  async retry(ownerId: UserId, webhookId: WebhookId, { ms, seq }: EventPlace): Promise<ListedDelivery | undefined> {
    const { rows } = await this.database.query<ListedDelivery>(
      `WITH due AS (UPDATE parked_delivery SET ${DUE_NOW} WHERE ${HELD} AND ${IS_KEPT} AND ms = $3 AND seq = $4 RETURNING webhook_id, ${LISTED}), woken AS (${wakeBacklogsNow('SELECT DISTINCT webhook_id, now() FROM due')})
       SELECT ${LISTED} FROM due`,
      [ownerId, webhookId, ms, seq],
    );
    if (rows[0]) this.backlogs.scheduled(this.database);
    return rows[0];
  }

  /**
   * Parks deliveries of earlier events to a webhook, to make them now, after those that are due. `fresh`: whether they are made in order per emitter. A delivery
   * that is parked already begins a new retry schedule, unless its event was deleted: then it stays given up. Returns one for each; none if the owner has no such
   * webhook.
   */
  async parkAgain(
    ownerId: UserId,
    webhookId: WebhookId,
    deliveries: DeliveryAgain[],
    { fresh }: { fresh: boolean },
  ): Promise<ListedDelivery[]> {
    const { rows } = await this.database.query<ListedDelivery>({
      name: 'delivery-park-again',
      text: `
        WITH hook AS MATERIALIZED (SELECT id FROM webhook WHERE owner_id = $1 AND id = $2 FOR SHARE), due AS (
          INSERT INTO parked_delivery (webhook_id, ${ADDED_COLUMNS}, attempts, fresh, tries, due_at)
          SELECT hook.id, d.ms, d.seq, d.emitter_id, d.stream, d.emit_id, d.time, d.context, d.body, d.attempts::jsonb, $12, 0, now()
          FROM hook CROSS JOIN unnest($3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bytea[], $11::text[])
            AS d (ms, seq, emitter_id, stream, emit_id, time, context, body, attempts)
          -- other statements lock the rows in this order, too
          ORDER BY d.ms, d.seq
          ON CONFLICT (webhook_id, ms, seq) DO UPDATE SET due_at = CASE WHEN ${IS_KEPT} THEN now() END,
            failed_at = CASE WHEN NOT ${IS_KEPT} THEN parked_delivery.failed_at END, scheduled_at = NULL, tries = 0, parked_at = now()
          RETURNING webhook_id, ${LISTED}
        ), woken AS (${wakeBacklogsNow('SELECT DISTINCT webhook_id, now() FROM due')})
        SELECT ${LISTED} FROM due`,
      values: [
        ownerId,
        webhookId,
        ...columnsOf(deliveries.map(({ delivery }) => delivery)),
        deliveries.map(({ attempts }) => JSON.stringify(attempts)),
        fresh,
      ],
    });
    if (rows.length > 0) this.backlogs.scheduled(this.database);
    return rows;
  }

  /** Makes all deliveries due now that were given up since then. Returns how many. */
  recover(ownerId: UserId, webhookId: WebhookId, sinceMs: number): Promise<number> {
    return inBatches({ webhook_id: webhookId, ms: -1, seq: -1 }, async ({ ms, seq }) => {
      const { rows } = await this.database.query<Batch>(
        `WITH batch AS MATERIALIZED (
           SELECT webhook_id, ms, seq FROM parked_delivery WHERE ${HELD} AND (ms, seq) > ($3, $4) ORDER BY ms, seq LIMIT ${AT_ONCE}
         ), due AS (
           UPDATE parked_delivery SET ${DUE_NOW} FROM batch
           WHERE ${IS_IN_BATCH} AND ${IS_KEPT} AND due_at IS NULL AND failed_at >= to_timestamp($5::float8 / 1000)
           RETURNING parked_delivery.webhook_id
         ), woken AS (${wakeBacklogsNow('SELECT DISTINCT webhook_id, now() FROM due')})
         SELECT *, (SELECT count(*)::int FROM due) AS count FROM batch ORDER BY ms DESC, seq DESC LIMIT 1`,
        [ownerId, webhookId, ms, seq, sinceMs],
      );
      if (rows[0]?.count) this.backlogs.scheduled(this.database);
      return rows[0];
    });
  }

  /** Gives up the deliveries of deleted events, also those in progress, and deletes the events' data. Returns how many there were. */
  async withdraw(ranges: DeletedRange[]): Promise<number> {
    // however many have no deliveries, they cost one statement
    const { rows } = await this.database.query<{ nth: number }>({
      name: 'delivery-withdrawn-ranges',
      text: `SELECT nth FROM ${DELETED} WHERE EXISTS (SELECT FROM parked_delivery WHERE ${IS_KEPT} AND ${hasDeletedPlace('parked_delivery')} OFFSET 0)`,
      values: deletedValues(ranges),
    });
    let count = 0;
    for (const { nth } of rows) count += await this.withdrawRange(ranges[nth - 1]!);
    return count;
  }

  private withdrawRange({ emitterId, place, start, end, stream }: DeletedRange): Promise<number> {
    const first: Key = { webhook_id: '', ms: start?.ms ?? 0, seq: start?.seq ?? 0 };
    const last = end ?? place;
    const error = JSON.stringify([
      { ts: Date.now(), status_code: null, duration_ms: 0, error: 'the event was deleted', response_body: null },
    ]);
    return inBatches(first, async (from) => {
      const { rows } = await this.database.query<Batch>(
        `WITH batch AS MATERIALIZED (
           SELECT webhook_id, ms, seq FROM parked_delivery
           WHERE emitter_id = $1 AND ${IS_KEPT} AND (ms, seq, webhook_id) > ($2, $3, $4) AND (ms, seq) < ($5, $6) AND (ms, seq) <= ($7, $8)
           ORDER BY ms, seq, webhook_id LIMIT ${AT_ONCE}
         ), given_up AS (
           UPDATE parked_delivery SET due_at = NULL, in_flight_until = NULL, failed_at = now(), body = '', context = NULL, attempts = attempts || $10::jsonb
           FROM batch
           WHERE ${IS_IN_BATCH} AND ${IS_KEPT} AND ${coversStreamOf('parked_delivery', '$9::text')}
           RETURNING 1
         )
         SELECT *, (SELECT count(*)::int FROM given_up) AS count FROM batch ORDER BY ms DESC, seq DESC, webhook_id DESC LIMIT 1`,
        [emitterId, from.ms, from.seq, from.webhook_id, place.ms, place.seq, last.ms, last.seq, stream, error],
      );
      return rows[0];
    });
  }

  /**
   * The newest delivery to each of some webhooks, of those that have waited too long. `wasSuspended`: the account of the webhook is or was suspended
   * within `parkedForMs`.
   */
  async findExpired({ parkedForMs, dueForMs }: Expiry): Promise<ExpiredDelivery[]> {
    const { rows } = await this.database.query<ExpiredRow>(
      `WITH example AS MATERIALIZED (
         SELECT DISTINCT ON (webhook_id) * FROM (${OLDEST_EXPIRED}) AS oldest ORDER BY webhook_id, ms DESC, seq DESC LIMIT $4
       )
       SELECT webhook_id, ms, seq, emitter_id, stream, emit_id, body, attempts, ${WAS_SUSPENDED} AS was_suspended
       FROM example JOIN parked_delivery USING (webhook_id, ms, seq)`,
      [parkedForMs, dueForMs, AT_ONCE, EXPIRED_WEBHOOKS],
    );
    return rows.map(({ webhook_id, ms, seq, emitter_id, stream, emit_id, body, attempts, was_suspended }) => ({
      webhookId: webhook_id,
      place: { ms, seq },
      emitterId: emitter_id,
      stream,
      emitId: emit_id,
      json: body,
      attempts,
      wasSuspended: was_suspended ?? false,
    }));
  }

  /**
   * Gives up such deliveries to these webhooks; where the account is or was suspended, their time begins again instead. Returns how many were given up, and
   * whether there may be more.
   */
  async giveUpExpired({ parkedForMs, dueForMs }: Expiry, webhookIds: WebhookId[]): Promise<{ count: number; more: boolean }> {
    const { rows } = await this.database.query<{ count: number; looked_at: number }>(
      `WITH batch AS MATERIALIZED (
         SELECT webhook_id, ms, seq, ${WAS_SUSPENDED} AS was_suspended FROM parked_delivery
         WHERE (webhook_id, ms, seq) IN (SELECT * FROM (${OLDEST_EXPIRED}) AS oldest WHERE webhook_id = ANY($4)) AND ${HAS_EXPIRED}
         FOR UPDATE SKIP LOCKED
       ), renewed AS (
         UPDATE parked_delivery SET parked_at = now() FROM batch WHERE ${IS_IN_BATCH} AND was_suspended
       ), expired AS (
         UPDATE parked_delivery SET due_at = NULL, in_flight_until = NULL, failed_at = now() FROM batch
         WHERE ${IS_IN_BATCH} AND was_suspended IS NOT TRUE
         RETURNING 1
       )
       SELECT (SELECT count(*)::int FROM batch) AS looked_at, (SELECT count(*)::int FROM expired) AS count`,
      [parkedForMs, dueForMs, AT_ONCE, webhookIds],
    );
    const { looked_at, count } = rows[0]!;
    givenUp.inc(count);
    return { count, more: looked_at > 0 };
  }

  /**
   * Makes deliveries due that were parked in the future, and retries that wait for longer than `longestMs`: the clock of the database was ahead then. The retries
   * of a webhook are found in the index of their times. Returns how many there were.
   */
  async correctDeliveries(longestMs: number): Promise<number> {
    const { rows } = await this.database.query<{ count: number }>(
      `WITH distant AS (
         (SELECT webhook_id, ms, seq FROM parked_delivery
          WHERE due_at IS NOT NULL AND parked_at > now() + interval '2 minutes' AND (NOT fresh OR due_at > now() + interval '2 minutes') LIMIT $2)
         UNION
         (SELECT parked.* FROM backlog CROSS JOIN LATERAL (
            SELECT webhook_id, ms, seq FROM parked_delivery
            WHERE webhook_id = backlog.webhook_id AND NOT fresh AND due_at IS NOT NULL AND due_at > now() + $1 * ${MS} LIMIT $2
          ) AS parked LIMIT $2)
       ), batch AS MATERIALIZED (
         SELECT webhook_id, ms, seq FROM parked_delivery
         WHERE (webhook_id, ms, seq) IN (SELECT * FROM distant) AND due_at IS NOT NULL FOR UPDATE SKIP LOCKED
       ), due AS (
         UPDATE parked_delivery SET due_at = now(), scheduled_at = NULL,
           -- not the same time: that would be a request of a user. A change of a fresh one would be one, too
           parked_at = CASE WHEN fresh THEN parked_at ELSE least(parked_at, now() - interval '1 ms') END
         FROM batch WHERE ${IS_IN_BATCH}
         RETURNING parked_delivery.webhook_id
       ), woken AS (
         ${wakeExistingBacklogs('IN (SELECT webhook_id FROM due)')}
       )
       SELECT count(*)::int AS count FROM due`,
      [longestMs, AT_ONCE],
    );
    const { count } = rows[0]!;
    if (count > 0) this.backlogs.scheduled(this.database);
    return count;
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

  /** Deletes some deliveries of deleted webhooks: of one webhook of each account. False if none is left, or other replicas delete them. */
  async deleteOfDeletedWebhooks(): Promise<boolean> {
    const { rows } = await this.database.query<DeletedWebhook>(
      'SELECT DISTINCT ON (owner_id) webhook_id FROM deleted_webhook ORDER BY owner_id, webhook_id',
    );
    let any = false;
    for (const { webhook_id } of rows) any = (await this.deleteSome(webhook_id)) || any;
    return any;
  }

  /** Of a deleted webhook: nothing is added to its deliveries. False if another replica deletes them. */
  private async deleteSome(webhookId: WebhookId): Promise<boolean> {
    const { rowCount } = await this.database.query(
      `WITH hook AS MATERIALIZED (
         SELECT webhook_id FROM deleted_webhook WHERE webhook_id = $1 FOR UPDATE SKIP LOCKED
       ), batch AS MATERIALIZED (
         SELECT webhook_id, ms, seq FROM hook JOIN parked_delivery USING (webhook_id) LIMIT $2
       ), deleted AS (
         DELETE FROM parked_delivery USING batch WHERE ${IS_IN_BATCH}
       ), ended AS (
         DELETE FROM deleted_webhook WHERE webhook_id IN (SELECT webhook_id FROM hook) AND (SELECT count(*) FROM batch) < $2
       )
       SELECT FROM hook`,
      [webhookId, DELETED_AT_ONCE],
    );
    return rowCount === 1;
  }
}

const valuesOf = (delivery: Delivery): unknown[] => Object.values(ADDED).map((valueOf) => valueOf(delivery));

/** An array for each column. */
const columnsOf = (deliveries: Delivery[]): unknown[][] =>
  Object.values(ADDED).map((valueOf) => deliveries.map((delivery) => valueOf(delivery)));
