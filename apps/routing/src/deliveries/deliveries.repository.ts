import { Injectable } from '@nestjs/common';
import type { EmitterId, WebhookId } from '#contracts';
import type { EventContext } from '#events';
import { Database, type Transaction } from '#database';
import type { Attempt, Delivery } from './delivery.js';
import { type Claim, DeliveryStore, type Mode, type NextLook, type Parked, type Settlement } from './delivery-store.js';
import type { TargetRow } from './target.js';

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

const MODE = "CASE WHEN NOT spilled THEN 'direct' WHEN closing_until > clock_timestamp() THEN 'closing' ELSE 'spilled' END";
const COLUMNS = 'ms, seq, emitter_id, stream, emit_id, time, context, body, fresh, attempts, tries';
/** What is taken at a time of bodies that may have a megabyte each. */
const TAKEN_BYTES = 8 * 1024 * 1024;
const MS = "interval '1 ms'";

/**
 * The store in PostgreSQL. It serves all owners: webhooks are named by the rooms's own subscriptions, never by a user. Prepared SQL: the hot path.
 *
 * Locks are taken in one order: webhook, parked_delivery, backlog. Who parks locks the webhook against changes (`FOR
 * SHARE`), so a change of its mode comes before what is parked or sees it.
 */
@Injectable()
export class DeliveriesRepository extends DeliveryStore {
  constructor(private readonly database: Database) {
    super();
  }

  async findTargets(ids: WebhookId[]): Promise<TargetRow[]> {
    const { rows } = await this.database.query<TargetRow>({
      name: 'delivery-targets',
      text: `SELECT id, owner_id, version, active, ${MODE} AS mode, rate_limit, url, secret, previous_secret, previous_secret_expires_at
             FROM webhook WHERE id = ANY($1)`,
      values: [ids],
    });
    return rows;
  }

  async parkFresh(webhookId: WebhookId, deliveries: Delivery[]): Promise<Mode | 'gone'> {
    const { rows } = await this.database.query<{ mode: Mode }>({
      name: 'delivery-park-fresh',
      text: `
        WITH hook AS MATERIALIZED (SELECT id, ${MODE} AS mode FROM webhook WHERE id = $1 FOR SHARE), parked AS (
          INSERT INTO parked_delivery (webhook_id, ms, seq, emitter_id, stream, emit_id, time, context, body, fresh, attempts, tries, due_at)
          SELECT hook.id, d.*, true, '[]', 0, now()
          FROM hook CROSS JOIN unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bytea[]) AS d
          WHERE hook.mode = 'spilled'
          -- read again after a crash or a rebalance
          ON CONFLICT (webhook_id, ms, seq) DO NOTHING
        ), woken AS (
          INSERT INTO backlog (webhook_id, next_due) SELECT id, now() FROM hook WHERE mode = 'spilled'
          -- while the breaker is open the next probe says when; and a row that is due already isn't written for nothing
          ON CONFLICT (webhook_id) DO UPDATE SET next_due = now() WHERE backlog.failed_probes IS NULL AND backlog.next_due > now()
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

  async parkInFlight(delivery: Delivery, leaseMs: number): Promise<void> {
    const { webhookId, place, emitterId, stream, emitId, time, json } = delivery;
    await this.database.transaction(async (transaction) => {
      if (!(await this.beginSpill(transaction, webhookId))) return;
      await transaction.query(
        `INSERT INTO parked_delivery (webhook_id, ms, seq, emitter_id, stream, emit_id, time, context, body, fresh, attempts, tries, due_at, in_flight_until)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, true, '[]', 0, now(), clock_timestamp() + $10 * ${MS}) ON CONFLICT (webhook_id, ms, seq) DO NOTHING`,
        [webhookId, place.ms, place.seq, emitterId, stream, emitId, time ?? null, contextText(delivery), json, leaseMs],
      );
      await this.wake(transaction, webhookId);
    });
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
        INSERT INTO backlog (webhook_id, next_due) SELECT webhook_id, due_at FROM parked WHERE due_at IS NOT NULL
        ON CONFLICT (webhook_id) DO UPDATE SET next_due = excluded.next_due
        WHERE backlog.failed_probes IS NULL AND backlog.next_due > excluded.next_due`,
      values: [
        ...[webhookId, place.ms, place.seq, emitterId, stream, emitId],
        ...[time ?? null, contextText(delivery), json, JSON.stringify(attempts), tries, pauseMs],
      ],
    });
  }

  async spill(webhookId: WebhookId, breaker: { probeInMs: number } | null): Promise<void> {
    await this.database.transaction(async (transaction) => {
      if (!(await this.beginSpill(transaction, webhookId))) return;
      if (!breaker) return this.wake(transaction, webhookId);
      await transaction.query(
        `INSERT INTO backlog (webhook_id, next_due, failed_probes) VALUES ($1, now() + $2 * ${MS}, 0)
         ON CONFLICT (webhook_id) DO UPDATE SET next_due = excluded.next_due, failed_probes = 0 WHERE backlog.failed_probes IS NULL`,
        [webhookId, breaker.probeInMs],
      );
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
        -- who waits for an attempt that was in flight
        UPDATE backlog SET next_due = now() WHERE webhook_id = $1 AND failed_probes IS NULL AND next_due > now()`,
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

  async markFailing(webhookId: WebhookId): Promise<void> {
    await this.database.query({
      name: 'delivery-mark-failing',
      text: 'UPDATE webhook SET failing_since = now() WHERE id = $1 AND failing_since IS NULL',
      values: [webhookId],
    });
  }

  async disable(webhookId: WebhookId, ifFailingForMs?: number): Promise<boolean> {
    return this.database.transaction(async (transaction) => {
      const { rowCount } = await transaction.query(
        `UPDATE webhook SET active = false, version = version + 1, updated_at = now()
         WHERE id = $1 AND active AND ($2::float8 IS NULL OR failing_since < now() - $2 * ${MS})`,
        [webhookId, ifFailingForMs ?? null],
      );
      if (rowCount === 0) return false;
      await transaction.query(
        'UPDATE parked_delivery SET due_at = NULL, in_flight_until = NULL, failed_at = now() WHERE webhook_id = $1 AND due_at IS NOT NULL',
        [webhookId],
      );
      return true;
    });
  }

  async claim(limit: number, leaseId: string, leaseMs: number): Promise<Claim[]> {
    const { rows } = await this.database.query<{ webhook_id: WebhookId }>({
      name: 'backlog-claim',
      text: `UPDATE backlog SET lease_id = $2, leased_until = now() + $3 * ${MS}
             WHERE webhook_id IN (
               SELECT webhook_id FROM backlog WHERE next_due <= now() AND leased_until <= now() ORDER BY next_due LIMIT $1 FOR UPDATE SKIP LOCKED
             )
             RETURNING webhook_id`,
      values: [limit, leaseId, leaseMs],
    });
    return rows.map(({ webhook_id }) => ({ webhookId: webhook_id, leaseId }));
  }

  async renew({ webhookId, leaseId }: Claim, leaseMs: number): Promise<{ failedProbes: number | null } | undefined> {
    const { rows } = await this.database.query<{ failed_probes: number | null }>({
      name: 'backlog-renew',
      text: `UPDATE backlog SET leased_until = now() + $3 * ${MS} WHERE webhook_id = $1 AND lease_id = $2 RETURNING failed_probes`,
      values: [webhookId, leaseId, leaseMs],
    });
    return rows[0] && { failedProbes: rows[0].failed_probes };
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
    // asked again: it may have been parked in flight between the two, and be among these
    return { parked: rows.map((row) => parkedOf(webhookId, row)), inFlight: await this.hasInFlight(webhookId) };
  }

  async takeProbe(webhookId: WebhookId): Promise<Parked | undefined> {
    const { rows } = await this.database.query<ParkedRow>({
      name: 'delivery-take-probe',
      // a fresh one, or else the one that was tried longest ago: an event that the receiver chokes on must not be the only one it's asked with
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

  async closeBreaker({ webhookId, leaseId }: Claim): Promise<void> {
    await this.database.query('UPDATE backlog SET failed_probes = NULL, next_due = now() WHERE webhook_id = $1 AND lease_id = $2', [
      webhookId,
      leaseId,
    ]);
  }

  async startClosing({ webhookId }: Claim, forMs: number): Promise<void> {
    await this.database.query(
      `UPDATE webhook SET closing_until = clock_timestamp() + $2 * ${MS}, version = version + 1 WHERE id = $1 AND spilled`,
      [webhookId, forMs],
    );
  }

  async finishClosing(claim: Claim): Promise<'direct' | 'more'> {
    const { webhookId } = claim;
    return this.database.transaction(async (transaction) => {
      await transaction.query('SELECT FROM webhook WHERE id = $1 FOR UPDATE', [webhookId]);
      // a statement of its own, to see what was parked while the lock was waited for
      const { rowCount } = await transaction.query(
        'SELECT FROM parked_delivery WHERE webhook_id = $1 AND fresh AND due_at IS NOT NULL LIMIT 1',
        [webhookId],
      );
      if (rowCount !== 0) return 'more';
      const { rows } = await transaction.query<{ failed_probes: number | null }>(
        'SELECT failed_probes FROM backlog WHERE webhook_id = $1 AND lease_id = $2 FOR UPDATE',
        [webhookId, claim.leaseId],
      );
      // not ours any more, or its breaker was opened elsewhere: whoever looks next goes on from there
      if (rows[0] && rows[0].failed_probes !== null) return 'more';
      if (rows[0]) {
        await transaction.query(
          `UPDATE webhook SET spilled = rate_limit IS NOT NULL, closing_until = NULL, version = version + 1
           WHERE id = $1 AND (spilled <> (rate_limit IS NOT NULL) OR closing_until IS NOT NULL)`,
          [webhookId],
        );
        await this.releaseUntilDue(transaction, claim);
      }
      return 'direct';
    });
  }

  async release(claim: Claim, next: NextLook): Promise<void> {
    const { webhookId, leaseId } = claim;
    await this.database.transaction(async (transaction) => {
      if (next.when === 'next due') return this.releaseUntilDue(transaction, claim);
      await transaction.query(
        `UPDATE backlog SET next_due = now() + $3 * ${MS}, failed_probes = coalesce($4, failed_probes), lease_id = NULL, leased_until = '-infinity'
         WHERE webhook_id = $1 AND lease_id = $2`,
        [webhookId, leaseId, next.inMs, next.when === 'probe' ? next.failedProbes : null],
      );
    });
  }

  private async hasInFlight(webhookId: WebhookId): Promise<boolean> {
    const { rowCount } = await this.database.query({
      name: 'delivery-in-flight',
      text: 'SELECT FROM parked_delivery WHERE webhook_id = $1 AND in_flight_until > now() LIMIT 1',
      values: [webhookId],
    });
    return rowCount !== 0;
  }

  /** False when the webhook is gone. Locks it. */
  private async beginSpill(transaction: Transaction, webhookId: WebhookId): Promise<boolean> {
    const { rowCount } = await transaction.query('SELECT FROM webhook WHERE id = $1 FOR UPDATE', [webhookId]);
    if (rowCount === 0) return false;
    await transaction.query(
      'UPDATE webhook SET spilled = true, closing_until = NULL, version = version + 1 WHERE id = $1 AND (NOT spilled OR closing_until IS NOT NULL)',
      [webhookId],
    );
    return true;
  }

  private async wake(transaction: Transaction, webhookId: WebhookId): Promise<void> {
    await transaction.query(
      `INSERT INTO backlog (webhook_id, next_due) VALUES ($1, now())
       ON CONFLICT (webhook_id) DO UPDATE SET next_due = now() WHERE backlog.failed_probes IS NULL AND backlog.next_due > now()`,
      [webhookId],
    );
  }

  /**
   * Says when the next of its deliveries is due. A backlog that has none stays only as long as its webhook is spilled:
   * then what is parked next wakes it.
   */
  private async releaseUntilDue(transaction: Transaction, { webhookId, leaseId }: Claim): Promise<void> {
    // locked first: the next statement sees what was parked before, and who parks after it finds the row as it's then
    const { rowCount } = await transaction.query('SELECT FROM backlog WHERE webhook_id = $1 AND lease_id = $2 FOR UPDATE', [
      webhookId,
      leaseId,
    ]);
    if (rowCount === 0) return;
    const { rows } = await transaction.query<{ next_due: Date | null; spilled: boolean }>(
      `SELECT spilled, least(
         (SELECT min(coalesce(in_flight_until, due_at)) FROM parked_delivery WHERE webhook_id = $1 AND fresh AND due_at IS NOT NULL),
         (SELECT min(due_at) FROM parked_delivery WHERE webhook_id = $1 AND NOT fresh AND due_at IS NOT NULL)
       ) AS next_due
       FROM webhook WHERE id = $1`,
      [webhookId],
    );
    const next = rows[0];
    if (!next || (next.next_due === null && !next.spilled)) {
      await transaction.query('DELETE FROM backlog WHERE webhook_id = $1', [webhookId]);
      return;
    }
    await transaction.query("UPDATE backlog SET next_due = $2, lease_id = NULL, leased_until = '-infinity' WHERE webhook_id = $1", [
      webhookId,
      next.next_due ?? 'infinity',
    ]);
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
