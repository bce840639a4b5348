import { Injectable } from '@nestjs/common';
import { emitterChanged, type EmitterState, type UserId, type WorkflowId } from '#contracts';
import { Database, type Transaction } from '#database';
import { recordOf } from '#messaging';
import { addToOutbox } from '#outbox';

interface WorkflowRow {
  id: WorkflowId;
  owner_id: UserId;
  name: string;
  active: boolean;
  deleted: boolean;
  version: number;
  created_at: Date;
}

/** Workflows and the facts of their changes. */
@Injectable()
export class WorkflowsRepository {
  constructor(private readonly database: Database) {}

  /** Writes the workflow's state; says nothing when nothing has changed. The owner of a workflow never changes. */
  async put(id: WorkflowId, ownerId: UserId, name: string, active: boolean): Promise<void> {
    await this.database.transaction(async (transaction) => {
      const { rows } = await transaction.query<WorkflowRow>(
        // a removed one that comes again is a new emitter to auto-subscriptions
        `INSERT INTO workflow (id, owner_id, name, active) VALUES ($1, $2, $3, $4)
         ON CONFLICT (id) DO UPDATE SET name = excluded.name, active = excluded.active, deleted = false, version = workflow.version + 1,
           created_at = CASE WHEN workflow.deleted THEN now() ELSE workflow.created_at END
         WHERE workflow.owner_id = excluded.owner_id AND (workflow.name, workflow.active, workflow.deleted) IS DISTINCT FROM (excluded.name, excluded.active, false)
         RETURNING *`,
        [id, ownerId, name, active],
      );
      await this.tell(transaction, rows);
    });
  }

  async remove(id: WorkflowId): Promise<void> {
    await this.database.transaction(async (transaction) => {
      const { rows } = await transaction.query<WorkflowRow>(
        'UPDATE workflow SET deleted = true, active = false, version = version + 1 WHERE id = $1 AND NOT deleted RETURNING *',
        [id],
      );
      await this.tell(transaction, rows);
    });
  }

  /** Those of the workflows that exist, whoever owns them: for the other rooms, never for a user. */
  async states(ids: string[]): Promise<EmitterState[]> {
    const { rows } = await this.database.query<WorkflowRow>('SELECT * FROM workflow WHERE id = ANY($1) AND NOT deleted', [ids]);
    return rows.map(workflowState);
  }

  private tell(transaction: Transaction, rows: WorkflowRow[]): Promise<void> {
    return addToOutbox(
      transaction,
      rows.map((row) => recordOf(emitterChanged, workflowState(row), row.id)),
    );
  }
}

const workflowState = (row: WorkflowRow): EmitterState => ({
  emitter_id: row.id,
  kind: 'workflow',
  owner_id: row.owner_id,
  active: row.active,
  deleted: row.deleted,
  version: row.version,
  name: row.name,
  created_at_ms: row.created_at.getTime(),
});
