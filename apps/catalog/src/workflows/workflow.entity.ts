import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { EmitterState, UserId, WorkflowId } from '#contracts';
import { BYTEWISE_TEXT, CREATED_AT } from '#database';

@Entity('workflow')
export class WorkflowRow {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: WorkflowId;

  @Column(BYTEWISE_TEXT)
  owner_id!: UserId;

  @Column('text')
  name!: string;

  @Column('boolean')
  active!: boolean;

  /** The row of a removed workflow stays, so that its version keeps growing when the workflow returns. */
  @Column('boolean', { default: false })
  deleted!: boolean;

  @Column('int', { default: 1 })
  version!: number;

  @Column(CREATED_AT)
  created_at!: Date;
}

export const workflowState = (row: WorkflowRow): EmitterState => ({
  emitter_id: row.id,
  kind: 'workflow',
  owner_id: row.owner_id,
  active: row.active,
  deleted: row.deleted,
  version: row.version,
  name: row.name,
  created_at_ms: row.created_at.getTime(),
});
