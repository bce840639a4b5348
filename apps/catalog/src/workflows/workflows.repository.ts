import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Column, Entity, In, Index, PrimaryColumn, Repository } from 'typeorm';
import { emitterChanged, type EmitterState, type UserId, type WorkflowId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT, Database, NOW_MS, type Transaction } from '#database';
import { recordOf } from '#messaging';
import { addToOutbox } from '#outbox';
import { nextVersion, overrule, VERSION, versionsOf } from '../database/version.js';
import { activity } from '../sources/source.entity.js';

@Entity('workflow')
@Index('workflow_of_owner', ['owner_id'])
export class WorkflowRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: WorkflowId;

  @Column(BYTEWISE_TEXT)
  owner_id!: UserId;

  /** Empty when the workflow is removed. */
  @Column('text')
  name!: string;

  @Column('boolean')
  active!: boolean;

  /** Its account is suspended: it counts as inactive. */
  @Column('boolean', { default: false })
  suspended!: boolean;

  /** The row of a removed workflow stays, so that its version keeps growing when the workflow returns. */
  @Column('boolean', { default: false })
  deleted!: boolean;

  /** When it was last removed, in ms. */
  @Column('bigint', { nullable: true })
  removed_at_ms!: number | null;

  @Column(VERSION)
  version!: number;

  @Column(CREATED_AT)
  created_at!: Date;
}

export const workflowState = (row: WorkflowRow): EmitterState => ({
  emitter_id: row.id,
  kind: 'workflow',
  owner_id: row.owner_id,
  ...activity(row, row.deleted),
  deleted: row.deleted,
  version: row.version,
  name: row.name,
  created_at_ms: row.created_at.getTime(),
  removed_at_ms: row.removed_at_ms ?? undefined,
});

/** The only writer of the table `workflow`. A row and the fact of its change are one transaction. */
@Injectable()
export class WorkflowsRepository {
  constructor(
    private readonly database: Database,
    @InjectRepository(WorkflowRow) private readonly workflows: Repository<WorkflowRow>,
  ) {}

  /** Stores the workflow's state, and publishes a fact if it has changed. Returns false if it has another owner: that never changes. */
  async put(id: WorkflowId, ownerId: UserId, name: string, active: boolean): Promise<boolean> {
    return this.database.transaction(async (transaction) => {
      // SQL, for the conditions of the upsert: ten thousand workflows of a registry arrive as fast as this statement runs
      const { rows } = await transaction.query<WorkflowRow>({
        name: 'workflow-put',
        // a workflow that is registered while its account is suspended is suspended, too; for auto-subscriptions, a workflow that was removed and returns is a new emitter
        text: `INSERT INTO workflow (id, owner_id, name, active, suspended)
               VALUES ($1, $2, $3, $4, EXISTS (SELECT FROM suspended_account WHERE owner_id = $2))
               ON CONFLICT (id) DO UPDATE SET name = excluded.name, active = excluded.active, suspended = excluded.suspended, deleted = false, version = ${nextVersion('workflow')},
                 created_at = CASE WHEN workflow.deleted THEN now() ELSE workflow.created_at END
               WHERE workflow.owner_id = excluded.owner_id AND (workflow.name, workflow.active, workflow.deleted) IS DISTINCT FROM (excluded.name, excluded.active, false)
               RETURNING *`,
        values: [id, ownerId, name, active],
      });
      await this.publish(transaction, rows);
      return rows.length > 0 || (await transaction.rows(WorkflowRow).existsBy({ id, owner_id: ownerId }));
    });
  }

  /** @param atMs when its removal was requested */
  async remove(id: WorkflowId, atMs: number): Promise<void> {
    await this.database.transaction(async (transaction) => {
      const removed = await transaction
        .rows(WorkflowRow)
        .createQueryBuilder()
        .update()
        .set({ deleted: true, active: false, name: '', removed_at_ms: atMs, version: () => nextVersion('workflow') })
        .where('id = :id AND NOT deleted', { id })
        .returning('*')
        .execute();
      await this.publish(transaction, removed.raw as WorkflowRow[]);
    });
  }

  /** Suspends, or lets continue, the next workflows of an account, at most `limit`. Returns the states of those that it has changed. */
  async suspend(ownerId: UserId, suspended: boolean, limit: number): Promise<EmitterState[]> {
    return this.change(
      `UPDATE workflow SET suspended = $2, version = ${nextVersion('workflow')}
       WHERE id IN (SELECT id FROM workflow WHERE owner_id = $1 AND suspended <> $2 AND NOT deleted ORDER BY id LIMIT $3)`,
      [ownerId, suspended, limit],
    );
  }

  /** Removes the next workflows of an account, at most `limit`. Returns the states of those that it has removed. */
  removeNext(ownerId: UserId, limit: number): Promise<EmitterState[]> {
    return this.change(
      `UPDATE workflow SET deleted = true, active = false, suspended = false, name = '', removed_at_ms = ${NOW_MS}, version = ${nextVersion('workflow')}
       WHERE id IN (SELECT id FROM workflow WHERE owner_id = $1 AND NOT deleted ORDER BY id LIMIT $2)`,
      [ownerId, limit],
    );
  }

  private change(update: string, values: unknown[]): Promise<EmitterState[]> {
    return this.database.transaction(async (transaction) => {
      const { rows } = await transaction.query<WorkflowRow>(`${update} RETURNING workflow.*`, values);
      await this.publish(transaction, rows);
      return rows.map(workflowState);
    });
  }

  /** The versions of those of these ids that are or were workflows, by id. */
  versions(ids: string[]): Promise<Map<string, number>> {
    return versionsOf(this.workflows, ids);
  }

  /** Publishes the stored states of workflows of which other services know these newer ones. Returns how many. */
  async overrule(states: EmitterState[]): Promise<number> {
    const changed = await this.change(overrule('workflow'), [
      states.map(({ emitter_id }) => emitter_id),
      states.map(({ version }) => version),
    ]);
    return changed.length;
  }

  /** The states of the workflows with these ids, also of those that were removed; of any account. Only for other services: users must not see them. */
  async states(ids: string[]): Promise<EmitterState[]> {
    return (await this.workflows.findBy({ id: In(ids) })).map(workflowState);
  }

  private publish(transaction: Transaction, rows: WorkflowRow[]): Promise<void> {
    return addToOutbox(
      transaction,
      rows.map((row) => ({ ...recordOf(emitterChanged, workflowState(row), row.id), account: row.owner_id })),
    );
  }
}
