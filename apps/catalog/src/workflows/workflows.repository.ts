import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Repository } from 'typeorm';
import { emitterChanged, type EmitterState, type UserId, type WorkflowId } from '#contracts';
import { Database, type Transaction } from '#database';
import { recordOf } from '#messaging';
import { addToOutbox } from '#outbox';
import { WorkflowRow, workflowState } from './workflow.entity.js';

/** Workflows and the facts of their changes. */
@Injectable()
export class WorkflowsRepository {
  constructor(
    private readonly database: Database,
    @InjectRepository(WorkflowRow) private readonly workflows: Repository<WorkflowRow>,
  ) {}

  /** Stores the workflow's state, and publishes a fact if it has changed. The owner of a workflow never changes. */
  async put(id: WorkflowId, ownerId: UserId, name: string, active: boolean): Promise<void> {
    await this.database.transaction(async (transaction) => {
      // SQL, for the conditions of the upsert: ten thousand workflows of a registry arrive as fast as this statement runs
      const { rows } = await transaction.query<WorkflowRow>({
        name: 'workflow-put',
        // for auto-subscriptions, a workflow that was removed and returns is a new emitter
        text: `INSERT INTO workflow (id, owner_id, name, active) VALUES ($1, $2, $3, $4)
               ON CONFLICT (id) DO UPDATE SET name = excluded.name, active = excluded.active, deleted = false, version = workflow.version + 1,
                 created_at = CASE WHEN workflow.deleted THEN now() ELSE workflow.created_at END
               WHERE workflow.owner_id = excluded.owner_id AND (workflow.name, workflow.active, workflow.deleted) IS DISTINCT FROM (excluded.name, excluded.active, false)
               RETURNING *`,
        values: [id, ownerId, name, active],
      });
      await this.publish(transaction, rows);
    });
  }

  async remove(id: WorkflowId): Promise<void> {
    await this.database.transaction(async (transaction) => {
      const removed = await transaction
        .rows(WorkflowRow)
        .createQueryBuilder()
        .update()
        .set({ deleted: true, active: false, version: () => 'version + 1' })
        .where('id = :id AND NOT deleted', { id })
        .returning('*')
        .execute();
      await this.publish(transaction, removed.raw as WorkflowRow[]);
    });
  }

  /** The states of the existing workflows among these ids, of any account. Only for other services: users must not see them. */
  async states(ids: string[]): Promise<EmitterState[]> {
    const rows = await this.workflows.findBy({ id: In(ids), deleted: false });
    return rows.map(workflowState);
  }

  private publish(transaction: Transaction, rows: WorkflowRow[]): Promise<void> {
    return addToOutbox(
      transaction,
      rows.map((row) => recordOf(emitterChanged, workflowState(row), row.id)),
    );
  }
}
