import { Injectable } from '@nestjs/common';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { UserId, WebhookId } from '#contracts';
import { BYTEWISE_TEXT, Database, isLeased, type Session, type Transaction } from '#database';
import { DueRows, LONGEST_MS, msToFirst } from '#due-work';
import { IS_IN_FLIGHT } from './parked-delivery.entity.js';
import type { Claim, NextLook, Renewed, Shares } from './delivery-store.js';

/** A webhook that has parked deliveries or is spilled. */
@Entity('backlog')
@Index('backlog_due', ['next_due'])
@Index('backlog_of_owner', ['owner_id', 'next_due'])
export class Backlog {
  @PrimaryColumn(BYTEWISE_TEXT)
  webhook_id!: WebhookId;

  /** Of the webhook; empty in a row that an earlier version has written, until it is claimed. */
  @Column({ ...BYTEWISE_TEXT, default: '' })
  owner_id!: UserId | '';

  @Column('timestamptz')
  next_due!: Date;

  /** null: its breaker is closed. */
  @Column('integer', { nullable: true })
  failed_probes!: number | null;

  /** The lease of the replica that drains it. Null with a later `leased_until`: it rests, for the rate limit of its webhook. */
  @Column({ ...BYTEWISE_TEXT, nullable: true })
  lease_id!: string | null;

  @Column('timestamptz', { default: '-infinity' })
  leased_until!: Date;

  /** How often it was made due at once. The replica that drains it compares this with what it has read before it sets a later time. */
  @Column('integer', { default: 0 })
  wakes!: number;
}

const MS = "interval '1 ms'";
const IS_DUE = `next_due <= now() AND NOT ${isLeased('leased_until')}`;
/** When a backlog that is released, and rests for `ms`, may be leased again. */
const restedAt = (ms: string): string => `coalesce(now() + nullif(${ms}::float8, 0) * ${MS}, '-infinity')`;
/** The columns of `Renewed`. */
const RENEWED = 'failed_probes AS "failedProbes", wakes';

/** SQL that adds backlogs of `rows` (columns `webhook_id` and `due`). */
const insertBacklogs = (rows: string): string =>
  `INSERT INTO backlog (webhook_id, owner_id, next_due)
   SELECT id, owner_id, due FROM (${rows}) AS woken (webhook_id, due) JOIN webhook ON id = woken.webhook_id`;

/**
 * SQL for `INSERT INTO backlog …`, or a part of a larger statement: wakes the backlogs of `rows` (columns `webhook_id` and `due`). While a breaker is
 * open, its next probe sets the time. A row that is due already is not written again.
 */
export const wakeBacklogs = (rows: string): string =>
  `${insertBacklogs(rows)}
   ON CONFLICT (webhook_id) DO UPDATE SET next_due = excluded.next_due WHERE backlog.failed_probes IS NULL AND backlog.next_due > excluded.next_due`;

/** The same, but a failing receiver is attempted at once, too. */
export const wakeBacklogsNow = (rows: string): string =>
  `${insertBacklogs(rows)} ON CONFLICT (webhook_id) DO UPDATE SET next_due = now(), wakes = backlog.wakes + 1`;

/** SQL that wakes the backlogs that `which` webhooks have, such as `= $1`; it adds none. */
export const wakeExistingBacklogs = (which: string): string =>
  `UPDATE backlog SET next_due = now() WHERE webhook_id ${which} AND failed_probes IS NULL AND next_due > now()`;

/** SQL that deletes the backlog of a deleted webhook ($1). */
export const DELETE_BACKLOG = 'DELETE FROM backlog WHERE webhook_id = $1';

/** The only writer of the table `backlog`: leases, due times and breakers. SQL, because leases are taken with SKIP LOCKED and the database's clock. */
@Injectable()
export class BacklogsRepository extends DueRows {
  constructor(private readonly database: Database) {
    super();
  }

  /** Of those that are due before the next look; one that is leased is due when its lease ends. If one is due now, the others are not read. */
  msToNext(): Promise<number | null> {
    return msToFirst(
      this.database,
      'backlog-next',
      `SELECT 0::float8 AS ms WHERE EXISTS (SELECT FROM backlog WHERE ${IS_DUE})
       UNION ALL
       (SELECT extract(epoch FROM greatest(next_due, leased_until) - now())::float8 * 1000 FROM backlog
        WHERE next_due < now() + ${LONGEST_MS} * ${MS} ORDER BY greatest(next_due, leased_until) LIMIT 1)
       LIMIT 1`,
    );
  }

  /**
   * If fewer are due than may be claimed, only those are read. Otherwise one after another of every account that has backlogs: however many of an account
   * are due, those of the others are found by a look into the index.
   */
  async claim(limit: number, leaseId: string, leaseMs: number, { most, taken }: Shares): Promise<Claim[]> {
    const { rows } = await this.database.query<{ webhook_id: WebhookId; owner_id: UserId; wakes: number }>({
      name: 'backlog-claim',
      text: `WITH RECURSIVE first AS MATERIALIZED (
               SELECT owner_id FROM backlog WHERE ${IS_DUE} ORDER BY next_due LIMIT $1 + 1
             ), next_owner AS (
               (SELECT owner_id FROM backlog WHERE (SELECT count(*) > $1 FROM first) ORDER BY owner_id LIMIT 1)
               UNION ALL
               SELECT (SELECT owner_id FROM backlog WHERE owner_id > next_owner.owner_id ORDER BY owner_id LIMIT 1) FROM next_owner
               WHERE next_owner.owner_id IS NOT NULL
             ), account AS (
               SELECT owner_id, coalesce(count, 0) AS taken
               FROM (SELECT owner_id FROM first UNION SELECT owner_id FROM next_owner WHERE owner_id IS NOT NULL) AS owner
               LEFT JOIN unnest($4::text[], $5::integer[]) AS taken (owner_id, count) USING (owner_id)
             ), next AS MATERIALIZED (
               SELECT webhook_id FROM account CROSS JOIN LATERAL (
                 SELECT webhook_id, next_due, row_number() OVER (ORDER BY next_due) AS nth FROM (
                   SELECT webhook_id, next_due FROM backlog WHERE owner_id = account.owner_id AND ${IS_DUE}
                   ORDER BY next_due LIMIT greatest(0, least($1, $6 - account.taken))
                 ) AS due
               ) AS ranked
               ORDER BY taken + nth, next_due LIMIT $1
             )
             UPDATE backlog SET lease_id = $2, leased_until = now() + $3 * ${MS},
               owner_id = CASE owner_id WHEN '' THEN coalesce((SELECT owner_id FROM webhook WHERE id = webhook_id), '') ELSE owner_id END
             WHERE webhook_id IN (
               SELECT webhook_id FROM backlog WHERE webhook_id IN (SELECT webhook_id FROM next) AND ${IS_DUE} FOR UPDATE SKIP LOCKED
             )
             RETURNING webhook_id, owner_id, wakes`,
      values: [limit, leaseId, leaseMs, [...taken.keys()], [...taken.values()], most],
    });
    return rows.map(({ webhook_id, owner_id, wakes }) => ({ webhookId: webhook_id, ownerId: owner_id, leaseId, wakes }));
  }

  async renew({ webhookId, leaseId }: Claim, leaseMs: number): Promise<Renewed | undefined> {
    const { rows } = await this.database.query<Renewed>({
      name: 'backlog-renew',
      text: `UPDATE backlog SET leased_until = now() + $3 * ${MS} WHERE webhook_id = $1 AND lease_id = $2 RETURNING ${RENEWED}`,
      values: [webhookId, leaseId, leaseMs],
    });
    return rows[0];
  }

  async closeBreaker({ webhookId, leaseId }: Claim): Promise<void> {
    await this.database.query('UPDATE backlog SET failed_probes = NULL, next_due = now() WHERE webhook_id = $1 AND lease_id = $2', [
      webhookId,
      leaseId,
    ]);
  }

  async openBreaker(transaction: Transaction, webhookId: WebhookId, probeInMs: number): Promise<void> {
    await transaction.query(
      `INSERT INTO backlog (webhook_id, owner_id, next_due, failed_probes) SELECT id, owner_id, now() + $2 * ${MS}, 0 FROM webhook WHERE id = $1
       ON CONFLICT (webhook_id) DO UPDATE SET next_due = excluded.next_due, failed_probes = 0 WHERE backlog.failed_probes IS NULL`,
      [webhookId, probeInMs],
    );
    this.scheduled(transaction, probeInMs);
  }

  async wake(transaction: Transaction, webhookId: WebhookId): Promise<void> {
    await transaction.query(wakeBacklogs('VALUES ($1::text, now())'), [webhookId]);
    this.scheduled(transaction);
  }

  /** The same, also if its receiver is failing. */
  async wakeNow(transaction: Transaction, webhookId: WebhookId): Promise<void> {
    await transaction.query(wakeBacklogsNow('VALUES ($1::text, now())'), [webhookId]);
    this.scheduled(transaction);
  }

  /** The webhooks' waiting deliveries may succeed now: attempts them at once. A spilled webhook has a backlog, even an empty one. */
  async restart(transaction: Transaction, webhookIds: WebhookId[]): Promise<void> {
    const { rowCount } = await transaction.query(
      `INSERT INTO backlog (webhook_id, owner_id, next_due) SELECT id, owner_id, now() FROM webhook
       WHERE id = ANY ($1) AND (spilled OR EXISTS (SELECT FROM backlog WHERE webhook_id = webhook.id))
       ON CONFLICT (webhook_id) DO UPDATE SET next_due = now(), failed_probes = NULL, wakes = backlog.wakes + 1`,
      [webhookIds],
    );
    if (rowCount) this.scheduled(transaction);
  }

  /** Makes failing receivers due whose next probe is later than `longestMs`: it was set while the clock of the database was ahead. Returns how many. */
  async correctProbes(longestMs: number): Promise<number> {
    const { rowCount } = await this.database.query(
      `UPDATE backlog SET next_due = now() WHERE failed_probes IS NOT NULL AND next_due > now() + $1 * ${MS} AND next_due < 'infinity'`,
      [longestMs],
    );
    if (rowCount) this.scheduled(this.database);
    return rowCount ?? 0;
  }

  /** Locks the backlog. Undefined if the lease is lost. */
  async lock(transaction: Transaction, { webhookId, leaseId }: Claim): Promise<Renewed | undefined> {
    const { rows } = await transaction.query<Renewed>(`SELECT ${RENEWED} FROM backlog WHERE webhook_id = $1 AND lease_id = $2 FOR UPDATE`, [
      webhookId,
      leaseId,
    ]);
    return rows[0];
  }

  /** Releases the lease until a time. A backlog that was woken after the drainer has read its webhook stays due, with its breaker as it is. */
  async release(
    { webhookId, leaseId, wakes }: Claim,
    next: Exclude<NextLook, { when: 'next due' }>,
    restMs: number,
    session: Session = this.database,
  ): Promise<void> {
    await session.query(
      `UPDATE backlog SET next_due = CASE WHEN wakes <> $5 THEN now() ELSE coalesce(now() + $3 * ${MS}, next_due) END,
         failed_probes = CASE WHEN wakes <> $5 THEN failed_probes ELSE coalesce($4, failed_probes) END, lease_id = NULL, leased_until = ${restedAt('$6')}
       WHERE webhook_id = $1 AND lease_id = $2`,
      [webhookId, leaseId, next.when === 'unchanged' ? null : next.inMs, next.when === 'probe' ? next.failedProbes : null, wakes, restMs],
    );
  }

  /**
   * Releases the lease until the next parked delivery is due. A backlog without one is deleted unless its webhook is spilled: then the next parked
   * delivery wakes it. One that was woken meanwhile is due at once.
   */
  async releaseUntilDue(transaction: Transaction, claim: Claim, restMs: number): Promise<void> {
    const { webhookId } = claim;
    // locked first: the next statement sees all deliveries parked before, and a later one finds the row as it is then
    const locked = await this.lock(transaction, claim);
    if (!locked) return;
    if (locked.wakes !== claim.wakes) return this.release(claim, { when: 'unchanged' }, restMs, transaction);
    const { rows } = await transaction.query<{ next_due: Date | null; spilled: boolean }>(
      `SELECT spilled, least(
         -- all fresh ones are due
         (SELECT due_at FROM parked_delivery WHERE webhook_id = $1 AND fresh AND due_at IS NOT NULL AND in_flight_until IS NULL ORDER BY ms, seq LIMIT 1),
         (SELECT min(CASE WHEN ${IS_IN_FLIGHT} THEN in_flight_until ELSE now() END) FROM parked_delivery
          WHERE webhook_id = $1 AND fresh AND due_at IS NOT NULL AND in_flight_until IS NOT NULL),
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
    await transaction.query(`UPDATE backlog SET next_due = $2, lease_id = NULL, leased_until = ${restedAt('$3')} WHERE webhook_id = $1`, [
      webhookId,
      next.next_due ?? 'infinity',
      restMs,
    ]);
  }
}
