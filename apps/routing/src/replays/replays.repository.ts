import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Column, Entity, type FindOptionsWhere, Index, PrimaryColumn, Repository } from 'typeorm';
import { type EmitterId, isId, type ListenerId, type ReplayId, type ReplayProgress, type UserId, type WebhookId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT, Database, isLeased, type Transaction } from '#database';
import { parseEventId } from '#events';
import { IS_SUSPENDED } from '../webhooks/webhook.entity.js';

/** Events of the log that are delivered once more to one listener. */
@Entity('replay')
@Index('replay_of_emitter', ['emitter_id', 'id'])
@Index('replay_of_owner', ['owner_id', 'leased_until'])
@Index('replay_running_of_owner', ['owner_id', 'leased_until'], { where: "status = 'running'" })
@Index('replay_ended', ['created_at'], { where: "status <> 'running'" })
export class ReplayRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: ReplayId;

  @Column(BYTEWISE_TEXT)
  owner_id!: UserId;

  @Column(BYTEWISE_TEXT)
  emitter_id!: EmitterId;

  @Column(BYTEWISE_TEXT)
  stream!: string;

  @Column(BYTEWISE_TEXT)
  listener_id!: ListenerId;

  /** Event ids, both inclusive. */
  @Column('text')
  from_id!: string;

  @Column('text')
  to_id!: string;

  @Column('text', { default: 'running' })
  status!: ReplayProgress['status'];

  /** When it was cancelled. Its status changes later: once its last batch has been attempted and counted. */
  @Column('timestamptz', { nullable: true })
  cancelled_at!: Date | null;

  @Column('integer')
  events!: number;

  @Column('integer', { default: 0 })
  delivered!: number;

  @Column('integer', { default: 0 })
  failed!: number;

  /** The next offset of each partition. */
  @Column('jsonb', { default: {} })
  offsets!: Record<string, number>;

  /** The clock of the record below each offset. */
  @Column('jsonb', { default: {} })
  clocks!: Record<string, number>;

  /** The last batch, until it is counted: the ids of the events whose deliveries are parked, or of the runs of a source. */
  @Column('jsonb', { default: [] })
  parked!: string[];

  /** When runs were handed over to the runtime. */
  @Column('timestamptz', { nullable: true })
  parked_at!: Date | null;

  /** Until then one replica works on it, or none does; afterwards, the end of its last turn. */
  @Column('timestamptz', { default: '-infinity' })
  leased_until!: Date;

  @Column(CREATED_AT)
  created_at!: Date;
}

/** The end of a lease, which identifies it: in ms, the precision of a Date. */
const LEASED_UNTIL = "date_trunc('milliseconds', now()) + interval '30 s'";
/** SQL: one delivery of a webhook ($1) that is due, however many wait. Each part has an index; all fresh ones are due. */
export const LIVE_DUE = `
  (SELECT FROM parked_delivery WHERE webhook_id = $1 AND fresh AND due_at IS NOT NULL ORDER BY ms, seq LIMIT 1)
  UNION ALL
  (SELECT FROM parked_delivery WHERE webhook_id = $1 AND NOT fresh AND due_at IS NOT NULL AND due_at <= now() ORDER BY due_at LIMIT 1)
  LIMIT 1`;
/** Of the deliveries or runs of a batch: how many have not ended, and how it ended for the others. */
export interface Outcomes {
  waiting: number;
  delivered: number;
  failed: number;
}

/** SQL with a literal: with a parameter, PostgreSQL could not use the index of running replays, and would read those that have ended, too. */
const NOT_CANCELLED = "status = 'running' AND cancelled_at IS NULL";
/** SQL: whether the listener with the id of the parameter `listener` is switched off. */
const IS_SWITCHED_OFF =
  'EXISTS (SELECT FROM webhook WHERE id = :listener AND NOT active UNION ALL SELECT FROM emitter WHERE id = :listener AND NOT active)';
/** How long a replay is listed after its end. */
const KEPT_MS = 30 * 24 * 3_600_000;

/**
 * Cancels the running replays from a deleted emitter, or to a deleted listener: its parked deliveries are deleted, so nothing more can be counted. Last in a
 * long transaction: the replica that works on one waits for it.
 */
export async function cancelReplaysOf(transaction: Transaction, id: EmitterId | ListenerId): Promise<void> {
  await transaction.query({
    name: 'replays-cancel-of',
    text: `UPDATE replay SET status = CASE WHEN listener_id = $1 THEN 'cancelled' ELSE status END, cancelled_at = coalesce(cancelled_at, now())
           WHERE status = 'running' AND (emitter_id = $1 OR listener_id = $1)`,
    values: [id],
  });
}

/** Cancels the running replays to a listener that is switched off: what its last batch has become is counted. */
export async function cancelReplaysTo(transaction: Transaction, id: ListenerId): Promise<void> {
  await cancelRunning(transaction.rows(ReplayRow), { listener_id: id });
}

/** They begin no further batch. */
async function cancelRunning(replays: Repository<ReplayRow>, which: FindOptionsWhere<ReplayRow>): Promise<void> {
  const update = replays.createQueryBuilder().update();
  await update
    .set({ cancelled_at: () => 'now()' })
    .where(which)
    .andWhere(NOT_CANCELLED)
    .execute();
}

/** The only writer of the table `replay`. */
@Injectable()
export class ReplaysRepository {
  constructor(
    private readonly database: Database,
    @InjectRepository(ReplayRow) private readonly replays: Repository<ReplayRow>,
  ) {}

  /**
   * One without events has nothing to wait for, and is done. That of an account that is suspended is cancelled, and one to a listener that is switched off: its
   * events may have been counted since before.
   */
  async add(
    row: Pick<ReplayRow, 'id' | 'owner_id' | 'emitter_id' | 'stream' | 'listener_id' | 'from_id' | 'to_id' | 'events'>,
  ): Promise<void> {
    await this.replays
      .createQueryBuilder()
      .insert()
      .values({
        ...row,
        status: row.events === 0 ? 'done' : 'running',
        cancelled_at: () => `CASE WHEN ${IS_SUSPENDED} OR ${IS_SWITCHED_OFF} THEN now() END`,
      })
      .setParameters({ owner: row.owner_id, listener: row.listener_id })
      .orIgnore()
      .execute();
  }

  /** Deletes the replays of an account, also those that run. */
  async deleteAll(ownerId: UserId): Promise<void> {
    await this.replays.delete({ owner_id: ownerId });
  }

  async find(ownerId: UserId, id: ReplayId): Promise<ReplayRow | undefined> {
    return (await this.replays.findOneBy({ owner_id: ownerId, id })) ?? undefined;
  }

  /** Includes the parked deliveries that have been attempted and are not stored as counted yet. */
  async progress(ownerId: UserId, replayId: ReplayId): Promise<ReplayProgress | undefined> {
    const row = await this.find(ownerId, replayId);
    if (!row) return undefined;
    const { id, status, cancelled_at, events } = row;
    // of one that has ended, nothing more is counted
    const parked = status === 'running' ? await this.outcomes(row) : { delivered: 0, failed: 0 };
    return {
      ...{ id, status: cancelled_at ? 'cancelled' : status, events },
      ...{ delivered: row.delivered + parked.delivered, failed: row.failed + parked.failed },
    };
  }

  /** The replay begins no further batch. */
  cancel(ownerId: UserId, id: ReplayId): Promise<void> {
    return cancelRunning(this.replays, { owner_id: ownerId, id });
  }

  cancelAll(ownerId: UserId): Promise<void> {
    return cancelRunning(this.replays, { owner_id: ownerId });
  }

  /** Those of the account that have neither ended nor been cancelled. */
  countRunning(ownerId: UserId): Promise<number> {
    return this.replays.createQueryBuilder().where({ owner_id: ownerId }).andWhere(NOT_CANCELLED).getCount();
  }

  /**
   * The replay whose turn it is: of the account that no replica has worked for since the longest time, the one that no replica has worked on since then.
   * Replays that have ended count as turns of their account: otherwise one that cancels and creates them would always be first. SQL: the database's clock,
   * and rows that others hold are skipped.
   */
  async claim(): Promise<ReplayRow | undefined> {
    const { rows } = await this.database.query<ReplayRow>({
      name: 'replay-claim',
      text: `WITH next AS (
               SELECT owner_id FROM (SELECT DISTINCT owner_id FROM replay WHERE status = 'running' AND NOT ${isLeased('leased_until')}) AS waiting
               ORDER BY (SELECT max(leased_until) FROM replay WHERE owner_id = waiting.owner_id) LIMIT 1
             )
             UPDATE replay SET leased_until = ${LEASED_UNTIL} WHERE id = (
               SELECT id FROM replay WHERE status = 'running' AND NOT ${isLeased('leased_until')} AND owner_id = (SELECT owner_id FROM next)
               ORDER BY leased_until LIMIT 1 FOR UPDATE SKIP LOCKED
             ) RETURNING *`,
      values: [],
    });
    return rows[0];
  }

  /** Whether a replay waits for its turn. */
  async anyWaits(): Promise<boolean> {
    const { rowCount } = await this.database.query({
      name: 'replay-waits',
      text: `SELECT FROM replay WHERE status = 'running' AND NOT ${isLeased('leased_until')} LIMIT 1`,
      values: [],
    });
    return rowCount !== 0;
  }

  /**
   * Stores how far it is and renews the lease; sets `cancelled_at` of the row. False if it has ended, or if the lease is lost.
   * @param restMs ends the lease instead; the next turn begins after this time at the earliest
   */
  async save(row: ReplayRow, { restMs }: { restMs?: number } = {}): Promise<boolean> {
    const { id, status, delivered, failed, offsets, clocks, parked, parked_at, leased_until } = row;
    const { rows } = await this.database.query<Pick<ReplayRow, 'status' | 'cancelled_at' | 'leased_until'>>({
      name: 'replay-save',
      text: `UPDATE replay SET status = CASE WHEN cancelled_at IS NOT NULL AND $2 = 'done' THEN 'cancelled' ELSE $2 END, delivered = $3, failed = $4, offsets = $5, clocks = $6,
               parked = $7, parked_at = $10, leased_until = coalesce(now() + $8 * interval '1 ms', ${LEASED_UNTIL})
             WHERE id = $1 AND status = 'running' AND leased_until = $9
             RETURNING status, cancelled_at, leased_until`,
      values: [
        ...[id, status, delivered, failed],
        ...[JSON.stringify(offsets), JSON.stringify(clocks), JSON.stringify(parked), restMs ?? null, leased_until, parked_at],
      ],
    });
    Object.assign(row, rows[0]);
    return rows.length === 1;
  }

  /** The state of the deliveries that are parked: how many wait for their first attempt, and how it ended for the others. */
  async outcomes({ listener_id, parked }: Pick<ReplayRow, 'listener_id' | 'parked'>): Promise<Outcomes> {
    if (!isId('webhook', listener_id) || parked.length === 0) return { waiting: 0, delivered: 0, failed: 0 };
    const places = parked.map((id) => parseEventId(id) ?? { ms: 0, seq: 0 });
    const { rows } = await this.database.query<{ waiting: number; failed: number }>({
      name: 'replay-outcomes',
      text: `SELECT count(*) FILTER (WHERE due_at IS NOT NULL AND tries = 0)::int AS waiting,
                    count(*) FILTER (WHERE due_at IS NULL OR tries > 0)::int AS failed
             FROM unnest($2::bigint[], $3::bigint[]) AS asked (ms, seq) JOIN parked_delivery p ON p.webhook_id = $1 AND p.ms = asked.ms AND p.seq = asked.seq`,
      values: [listener_id, places.map(({ ms }) => ms), places.map(({ seq }) => seq)],
    });
    const { waiting, failed } = rows[0] ?? { waiting: 0, failed: 0 };
    return { waiting, failed, delivered: parked.length - waiting - failed };
  }

  /** Whether the webhook has live deliveries that are due: those go first. */
  async hasDue(webhookId: WebhookId): Promise<boolean> {
    const { rowCount } = await this.database.query({
      name: 'replay-live-due',
      text: LIVE_DUE,
      values: [webhookId],
    });
    return rowCount !== 0;
  }

  async deleteOld(): Promise<void> {
    const old = new Date(Date.now() - KEPT_MS);
    const replays = this.replays.createQueryBuilder();
    // the end of the last turn; one that never had a turn has only a creation
    await replays.delete().where("status <> 'running' AND created_at < :old AND leased_until < :old", { old }).execute();
  }
}
