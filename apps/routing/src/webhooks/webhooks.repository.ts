import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Not, Repository } from 'typeorm';
import { SluiceError, type UserId, type WebhookId } from '#contracts';
import { Database, type KeysetPage, readKeysetPage, type Transaction, UNIQUE_VIOLATION } from '#database';
import { counter } from '#observability';
import { type AccountRecord, addToOutbox } from '#outbox';
import { IS_SUSPENDED, type RotatedSecretRow, type SecretRow, SuspendedAccountRow, WebhookRow } from './webhook.entity.js';

/** The shortest time between two reports about deliveries to a webhook that were given up. */
export const REPORT_EVERY_MS = 3_600_000;

/** The actions of other features when a webhook changes; it keeps this feature independent of them. */
export abstract class WebhookDependents {
  /** Runs in the transaction that creates or changes webhooks: waiting deliveries may succeed now. */
  abstract webhooksChanged(transaction: Transaction, ids: WebhookId[]): Promise<void>;
  /** Runs in the transaction that switches a webhook off, also because its receiver fails: then waiting deliveries are given up. */
  abstract webhookSwitchedOff(transaction: Transaction, id: WebhookId): Promise<void>;
  /** Runs in the transaction that deletes a webhook: deletes everything that belongs to it, or arranges for it. */
  abstract webhookDeleted(transaction: Transaction, ownerId: UserId, id: WebhookId): Promise<void>;
}

const spills = counter('webhooks_spilled_total', 'Changes of a webhook to delivery from its backlog.', ['reason']);

const MS = "interval '1 ms'";
/** SQL: a time was within this many ms. One in the future was stored while the clock of the database was ahead, and counts as none. */
const isWithin = (time: string, ms: string): string =>
  `coalesce(${time} BETWEEN now() - ${ms} * ${MS} AND now() + interval '2 minutes', false)`;
/** Of a webhook: each is a signature of every delivery. */
const MOST_PREVIOUS_SECRETS = 5;
/**
 * How a new delivery to a webhook is handled:
 * - `direct`: it is attempted at once, from memory
 * - `spilled`: it is parked, and delivered from the backlog in order
 * - `closing`: it waits in memory for a moment, because the backlog is about to be empty
 */
export type Mode = 'direct' | 'spilled' | 'closing';

/** A webhook with what deliveries need to know of it. */
export interface TargetRow {
  id: WebhookId;
  owner_id: UserId;
  version: number;
  active: boolean;
  giving_up: boolean;
  mode: Mode;
  rate_limit: number | null;
  url: string;
  secret: string;
  /** The newest first; null: none. */
  previous_secrets: { secret: string; until_ms: number }[] | null;
}

/** How often the failures of a receiver are noted: a share of the pause after which a receiver begins to fail again. */
const NOTED = 0.05;

/** The receiver of an attempt. Its outcome says nothing about a webhook that has got another URL since. */
export type Attempted = Pick<TargetRow, 'id' | 'url'>;

/** SQL: what happens to new deliveries, see Mode. */
export const MODE = "CASE WHEN NOT spilled THEN 'direct' WHEN closing_until > clock_timestamp() THEN 'closing' ELSE 'spilled' END";

/** The changed columns; the others keep their values. */
export type WebhookChange = Partial<Pick<WebhookRow, 'name' | 'description' | 'url' | 'active' | 'rate_limit' | 'external_id'>>;

/** The only writer of the tables `webhook` (the users' settings and the state of deliveries), `previous_secret` and `suspended_account`. */
@Injectable()
export class WebhooksRepository {
  private readonly listeners: ((id: WebhookId) => void)[] = [];

  constructor(
    private readonly database: Database,
    @InjectRepository(WebhookRow) private readonly webhooks: Repository<WebhookRow>,
    private readonly dependents: WebhookDependents,
  ) {}

  /** Calls `listener` after each change by its owner that this process has committed, and after the deletion. */
  onChange(listener: (id: WebhookId) => void): void {
    this.listeners.push(listener);
  }

  private changed(id: WebhookId): void {
    for (const listener of this.listeners) listener(id);
  }

  /**
   * Creates the webhook, unless it exists; suspended if its account is. Undefined if its id belongs to another account. Throws a conflict if its external id
   * is taken, or the account has `most` webhooks beside this one.
   */
  async create(
    ownerId: UserId,
    webhook: Pick<WebhookRow, 'id' | 'name' | 'description' | 'url' | 'rate_limit' | 'external_id' | 'secret'>,
    most = Infinity,
  ): Promise<WebhookRow | undefined> {
    await this.database.transaction(async (transaction) => {
      await lockAccount(transaction, ownerId);
      if (most < Infinity) await this.requireFewer(transaction, ownerId, webhook.id, most);
      await transaction
        .rows(WebhookRow)
        .createQueryBuilder()
        .insert()
        .values({ ...webhook, owner_id: ownerId, suspended: () => IS_SUSPENDED, spilled: webhook.rate_limit !== null })
        .setParameter('owner', ownerId)
        .orIgnore()
        .execute();
      // any other has no backlog yet
      if (webhook.rate_limit !== null) await this.dependents.webhooksChanged(transaction, [webhook.id]);
    });
    const found = await this.find(ownerId, webhook.id);
    if (!found && webhook.external_id !== null && (await this.webhooks.existsBy({ owner_id: ownerId, external_id: webhook.external_id })))
      throw externalIdTaken();
    return found;
  }

  async find(ownerId: UserId, id: WebhookId): Promise<WebhookRow | undefined> {
    return (await this.webhooks.findOneBy({ owner_id: ownerId, id })) ?? undefined;
  }

  private async requireFewer(transaction: Transaction, ownerId: UserId, id: WebhookId, most: number): Promise<void> {
    const others = await transaction.rows(WebhookRow).countBy({ owner_id: ownerId, id: Not(id) });
    if (others >= most) throw new SluiceError('conflict', `this account has ${others} webhooks; the limit is ${most}`);
  }

  list(ownerId: UserId, page: KeysetPage, externalId?: string): Promise<{ rows: WebhookRow[]; total: number }> {
    const owned = this.webhooks.createQueryBuilder('webhook').where('webhook.owner_id = :ownerId', { ownerId });
    if (externalId !== undefined) owned.andWhere('webhook.external_id = :externalId', { externalId });
    return readKeysetPage(owned, page);
  }

  /** Throws a conflict when the new external id is taken. */
  async update(ownerId: UserId, id: WebhookId, change: WebhookChange): Promise<WebhookRow | undefined> {
    try {
      const row = await this.tryUpdate(ownerId, id, change);
      this.changed(id);
      return row;
    } catch (error) {
      throw (error as { code?: string }).code === UNIQUE_VIOLATION ? externalIdTaken() : error;
    }
  }

  private tryUpdate(ownerId: UserId, id: WebhookId, change: WebhookChange): Promise<WebhookRow | undefined> {
    return this.database.transaction(async (transaction) => {
      const webhooks = transaction.rows(WebhookRow);
      const found = { owner_id: ownerId, id };
      // the new receiver has not failed
      if (change.url !== undefined) await webhooks.update({ ...found, url: Not(change.url) }, { failing_since: null });
      const { affected } = await webhooks.update(found, {
        ...change,
        ...switched(change.active),
        updated_at: () => 'now()',
        version: () => 'version + 1',
      });
      if (affected !== 1) return undefined;
      const row = await webhooks.findOneByOrFail(found);
      // only one replica can enforce the rate: every delivery goes through the backlog, which one replica leases at a time
      if (row.rate_limit !== null) await webhooks.update(found, { spilled: true });
      if (change.active) await webhooks.update(found, { failing_since: null, giving_up: false });
      if (change.url !== undefined || change.active || change.rate_limit !== undefined)
        await this.dependents.webhooksChanged(transaction, [id]);
      if (change.active === false) await this.dependents.webhookSwitchedOff(transaction, id);
      return row;
    });
  }

  /** Deletes the webhook and everything that belongs to it; most deliveries of a large backlog later. False if the owner has no such webhook. */
  async delete(ownerId: UserId, id: WebhookId): Promise<boolean> {
    const deleted = await this.database.transaction(async (transaction) => {
      const { rowCount } = await transaction.query({
        name: 'webhook-delete',
        text: 'DELETE FROM webhook WHERE owner_id = $1 AND id = $2',
        values: [ownerId, id],
      });
      if (rowCount !== 1) return false;
      // one statement later: a rotation of its secret may have ended meanwhile
      await transaction.query({ name: 'webhook-delete-secrets', text: 'DELETE FROM previous_secret WHERE webhook_id = $1', values: [id] });
      // it may have very many subscriptions
      transaction.takeLong();
      await this.dependents.webhookDeleted(transaction, ownerId, id);
      return true;
    });
    this.changed(id);
    return deleted;
  }

  /**
   * Suspends, or lets continue, all webhooks of an account, and those that it gets until it is resumed. Returns how many were changed. The time of the
   * change shows which events they may have missed. A receiver that was failing counts as failing from its next failure on.
   */
  async suspend(ownerId: UserId, suspended: boolean): Promise<number> {
    const ids = await this.database.transaction(async (transaction) => {
      await lockAccount(transaction, ownerId);
      const accounts = transaction.rows(SuspendedAccountRow);
      if (suspended) await accounts.createQueryBuilder().insert().values({ owner_id: ownerId }).orIgnore().execute();
      else await accounts.delete({ owner_id: ownerId });
      const { rows } = await transaction.query<{ id: WebhookId }>(
        `UPDATE webhook SET suspended = $2, version = version + 1, updated_at = now(),
           activated_at = CASE WHEN active AND NOT $2 THEN now() ELSE activated_at END,
           deactivated_at = CASE WHEN active AND $2 THEN now() ELSE deactivated_at END,
           resumed_at = CASE WHEN $2 THEN resumed_at ELSE now() END, failing_since = CASE WHEN $2 THEN failing_since END
         WHERE owner_id = $1 AND suspended <> $2 RETURNING id`,
        [ownerId, suspended],
      );
      const changed = rows.map(({ id }) => id);
      if (!suspended) await this.dependents.webhooksChanged(transaction, changed);
      return changed;
    });
    for (const id of ids) this.changed(id);
    return ids.length;
  }

  /** For an account that is deleted. */
  async forgetSuspension(ownerId: UserId): Promise<void> {
    await this.database.rows(SuspendedAccountRow).delete({ owner_id: ownerId });
  }

  async findSecret(ownerId: UserId, id: WebhookId): Promise<SecretRow | undefined> {
    return (await this.webhooks.findOne({ select: { id: true, secret: true }, where: { owner_id: ownerId, id } })) ?? undefined;
  }

  /** Replaces the secret and keeps the old one for a while, unless this rotation has already happened. SQL: one statement, for the old secret and the clock. */
  async rotateSecret(
    ownerId: UserId,
    id: WebhookId,
    secret: string,
    rotationId: string,
    keepMs: number,
  ): Promise<RotatedSecretRow | undefined> {
    await this.database.query(
      `WITH before AS (
         SELECT id, secret FROM webhook WHERE owner_id = $1 AND id = $2 AND rotation_id IS DISTINCT FROM $4
           AND NOT EXISTS (SELECT FROM previous_secret WHERE webhook_id = $2 AND rotation_id = $4) FOR NO KEY UPDATE
       ), kept AS (
         INSERT INTO previous_secret (webhook_id, rotation_id, secret, expires_at) SELECT id, $4, secret, now() + $5 * ${MS} FROM before
       ), surplus AS (
         DELETE FROM previous_secret WHERE webhook_id = (SELECT id FROM before) AND (expires_at <= now() OR rotation_id IN (
           SELECT rotation_id FROM previous_secret WHERE webhook_id = $2 ORDER BY expires_at DESC OFFSET $6))
       )
       UPDATE webhook SET secret = $3, rotation_id = $4, updated_at = now(), version = version + 1 WHERE id = (SELECT id FROM before)`,
      [ownerId, id, secret, rotationId, keepMs, MOST_PREVIOUS_SECRETS - 1],
    );
    this.changed(id);
    const { rows } = await this.database.query<RotatedSecretRow>(
      `SELECT secret, (SELECT max(expires_at) FROM previous_secret WHERE webhook_id = $2) AS previous_secret_expires_at
       FROM webhook WHERE owner_id = $1 AND id = $2`,
      [ownerId, id],
    );
    return rows[0];
  }

  /** Locks the webhook against its deletion until the transaction ends. False if the owner has no such webhook. */
  async hold(transaction: Transaction, ownerId: UserId, id: string): Promise<boolean> {
    const { rowCount } = await transaction.query('SELECT FROM webhook WHERE owner_id = $1 AND id = $2 FOR KEY SHARE', [ownerId, id]);
    return rowCount === 1;
  }

  /** Prepared SQL: first attempts depend on it. */
  async findTargets(ids: WebhookId[]): Promise<TargetRow[]> {
    const { rows } = await this.database.query<TargetRow>({
      name: 'delivery-targets',
      text: `SELECT id, owner_id, version, active AND NOT suspended AS active, giving_up, ${MODE} AS mode, rate_limit, url, secret,
               (SELECT json_agg(json_build_object('secret', secret, 'until_ms', floor(extract(epoch FROM expires_at) * 1000)) ORDER BY expires_at DESC)
                FROM previous_secret WHERE webhook_id = webhook.id) AS previous_secrets
             FROM webhook WHERE id = ANY($1)`,
      values: [ids],
    });
    return rows;
  }

  /** Locks the webhook against changes until the transaction ends. Undefined if it is deleted. */
  async lock(transaction: Transaction, id: WebhookId): Promise<Pick<WebhookRow, 'spilled' | 'url'> | undefined> {
    const { rows } = await transaction.query<WebhookRow>('SELECT spilled, url FROM webhook WHERE id = $1 FOR NO KEY UPDATE', [id]);
    return rows[0];
  }

  /** From now on new deliveries to the webhook are parked. Locks it. False if it is deleted, or has another URL than `onlyAt`. */
  async spill(transaction: Transaction, id: WebhookId, reason: 'failing' | 'slow', onlyAt?: string): Promise<boolean> {
    const webhook = await this.lock(transaction, id);
    if (!webhook || (onlyAt !== undefined && webhook.url !== onlyAt)) return false;
    if (!webhook.spilled) transaction.afterCommit(async () => spills.inc({ reason }));
    await transaction.query(
      'UPDATE webhook SET spilled = true, closing_until = NULL, version = version + 1 WHERE id = $1 AND (NOT spilled OR closing_until IS NOT NULL)',
      [id],
    );
    return true;
  }

  async startClosing(id: WebhookId, forMs: number): Promise<void> {
    await this.database.query(
      `UPDATE webhook SET closing_until = clock_timestamp() + $2 * ${MS}, version = version + 1 WHERE id = $1 AND spilled`,
      [id, forMs],
    );
  }

  /** From now on new deliveries are attempted at once, unless the webhook has a rate limit. */
  async finishClosing(transaction: Transaction, id: WebhookId): Promise<void> {
    await transaction.query(
      `UPDATE webhook SET spilled = rate_limit IS NOT NULL, closing_until = NULL, version = version + 1
       WHERE id = $1 AND (spilled <> (rate_limit IS NOT NULL) OR closing_until IS NOT NULL)`,
      [id],
    );
  }

  /**
   * The receiver has failed. If it did not fail within `pauseMs` before, it begins to fail: it may have had no deliveries that could succeed. A failure soon
   * after another one is not stored.
   */
  async markFailing({ id, url }: Attempted, pauseMs: number): Promise<void> {
    await this.database.query({
      name: 'delivery-mark-failing',
      text: `UPDATE webhook SET last_failed_at = now(),
               failing_since = CASE WHEN ${isWithin('last_failed_at', '$3')} THEN coalesce(failing_since, now()) ELSE now() END
             WHERE id = $1 AND url = $2 AND (failing_since IS NULL OR NOT ${isWithin('last_failed_at', `$3 * ${NOTED}`)})`,
      values: [id, url, pauseMs],
    });
  }

  /**
   * The receivers have responded, this many ms ago, so they are not failing, unless they have failed since. Does not wait for the deletion of a webhook.
   */
  async markResponding(ages: Map<WebhookId, number>): Promise<void> {
    await this.database.query(
      `WITH kept AS MATERIALIZED (
         SELECT id FROM webhook JOIN unnest($1::text[], $2::float8[]) AS responded (id, age) USING (id)
         WHERE failing_since <= now() - age * ${MS} FOR KEY SHARE OF webhook SKIP LOCKED
       )
       UPDATE webhook SET failing_since = NULL
       WHERE id IN (SELECT id FROM webhook WHERE id IN (SELECT id FROM kept) ORDER BY id FOR NO KEY UPDATE)`,
      [[...ages.keys()], [...ages.values()]],
    );
  }

  /** Disables the webhook, and begins to give up its deliveries; with `ifFailingForMs` only if it has been failing for that long. Returns whether it did. */
  async disable(transaction: Transaction, { id, url }: Attempted, ifFailingForMs?: number): Promise<boolean> {
    const { rowCount } = await transaction.query(
      `UPDATE webhook SET active = false, giving_up = true, version = version + 1, updated_at = now(),
         deactivated_at = CASE WHEN suspended THEN deactivated_at ELSE now() END
       WHERE id = $1 AND url = $2 AND active AND ($3::float8 IS NULL OR failing_since < now() - $3 * ${MS})`,
      [id, url, ifFailingForMs ?? null],
    );
    if (rowCount !== 0) await this.dependents.webhookSwitchedOff(transaction, id);
    return rowCount !== 0;
  }

  /** All deliveries that waited for the disabled webhook are given up. */
  async endGivingUp(id: WebhookId): Promise<void> {
    await this.database.query('UPDATE webhook SET giving_up = false WHERE id = $1', [id]);
  }

  /**
   * Stores a report about a delivery to the webhook that was given up, unless one was stored within the last hour. The row's lock lets only one replica
   * report.
   */
  async reportFailure(transaction: Transaction, id: WebhookId, report: AccountRecord): Promise<void> {
    const { rowCount } = await transaction.query(
      `UPDATE webhook SET failure_told_at = now() WHERE id = $1 AND NOT ${isWithin('failure_told_at', '$2')}`,
      [id, REPORT_EVERY_MS],
    );
    if (rowCount === 1) await addToOutbox(transaction, [report]);
  }
}

/** The time at which the owner switches a webhook on or off. One that is suspended is off already, and stays so. */
function switched(active: boolean | undefined): Partial<Record<'activated_at' | 'deactivated_at', () => string>> {
  if (active === undefined) return {};
  return active
    ? { activated_at: () => 'CASE WHEN active OR suspended THEN activated_at ELSE now() END' }
    : { deactivated_at: () => 'CASE WHEN active AND NOT suspended THEN now() ELSE deactivated_at END' };
}

/** Until the transaction ends, another one waits that creates or suspends webhooks of the account: it counts and suspends these, too. */
async function lockAccount(transaction: Transaction, ownerId: UserId): Promise<void> {
  await transaction.query({
    name: 'webhooks-lock',
    text: "SELECT pg_advisory_xact_lock(hashtext('webhooks'), hashtext($1))",
    values: [ownerId],
  });
}

const externalIdTaken = (): SluiceError => new SluiceError('conflict', 'another of your webhooks has this external_id');
