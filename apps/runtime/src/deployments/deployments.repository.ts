import { Injectable } from '@nestjs/common';
import type { Schedule, SourceId } from '#contracts';
import { Database, type Transaction } from '#database';
import { FinishedRunRow } from '../runs/finished-run.entity.js';
import { SourceDb, SourceDedupe } from '../runs/source-state.entity.js';
import { WaitingEmit } from '../waiting/waiting-emit.entity.js';
import { DeploymentRow } from './deployment.entity.js';
import type { DeployedState } from './hook-runs.js';

/** The row in the two parts that hooks are decided by: where it stands, and what it runs. */
export const deployedState = ({ source_id, owner_id, active, version, kills_in_row: _, ...deployment }: DeploymentRow): DeployedState => ({
  source_id,
  owner_id,
  active,
  version,
  deployment,
});

@Injectable()
export class DeploymentsRepository {
  constructor(private readonly database: Database) {}

  /** Prepared SQL, as by endpoint: each run and each request at an endpoint begins with it. */
  async find(sourceId: string): Promise<DeploymentRow | undefined> {
    const { rows } = await this.database.query<DeploymentRow>({
      name: 'deployment',
      text: 'SELECT * FROM deployment WHERE source_id = $1',
      values: [sourceId],
    });
    return rows[0];
  }

  async findByEndpoint(endpointKey: string): Promise<DeploymentRow | undefined> {
    const { rows } = await this.database.query<DeploymentRow>({
      name: 'deployment-by-endpoint',
      text: 'SELECT * FROM deployment WHERE endpoint_key = $1',
      values: [endpointKey],
    });
    return rows[0];
  }

  /** The source as it is, locked until the transaction ends. */
  async lock(transaction: Transaction, sourceId: string): Promise<DeploymentRow | undefined> {
    const { rows } = await transaction.query<DeploymentRow>({
      name: 'deployment-lock',
      text: 'SELECT * FROM deployment WHERE source_id = $1 FOR UPDATE',
      values: [sourceId],
    });
    return rows[0];
  }

  /** Writes the newest state. */
  async put(transaction: Transaction, row: Omit<DeploymentRow, 'kills_in_row'>): Promise<void> {
    await transaction
      .rows(DeploymentRow)
      .upsert({ ...(row as object), hooks: row.hooks ?? (null as never), kills_in_row: 0 }, ['source_id']);
  }

  /** Removes the source; its timers go with it. What it kept stays for its last hook. */
  async remove(transaction: Transaction, sourceId: SourceId): Promise<void> {
    await transaction.rows(DeploymentRow).delete({ source_id: sourceId });
    await transaction.rows(WaitingEmit).delete({ source_id: sourceId });
  }

  /** Forgets all that a source kept. */
  async forgetKept(transaction: Transaction, sourceId: SourceId): Promise<void> {
    await transaction.rows(SourceDb).delete({ source_id: sourceId });
    await transaction.rows(SourceDedupe).delete({ source_id: sourceId });
    await transaction.rows(FinishedRunRow).delete({ source_id: sourceId });
  }

  /** Counts consecutive runs that ended their process; returns how many there are now. Prepared SQL: it follows each run, and mostly finds nothing to change. */
  async countKill(sourceId: string, killed: boolean): Promise<number> {
    const { rows } = await this.database.query<{ kills_in_row: number }>({
      name: 'deployment-kills',
      text: `UPDATE deployment SET kills_in_row = CASE WHEN $2 THEN kills_in_row + 1 ELSE 0 END WHERE source_id = $1 AND ($2 OR kills_in_row > 0) RETURNING kills_in_row`,
      values: [sourceId, killed],
    });
    return rows[0]?.kills_in_row ?? 0;
  }

  /**
   * Sets the timers: one whose schedule has not changed keeps its next tick. `next` returns the first tick of a new one. SQL, for the condition of the
   * upsert.
   */
  async putTimers(
    transaction: Transaction,
    sourceId: SourceId,
    schedules: Record<string, Schedule>,
    next: (prop: string, schedule: Schedule) => Date | null,
  ): Promise<void> {
    const timers = Object.entries(schedules).flatMap(([prop, schedule]) => {
      const at = next(prop, schedule);
      return at ? [{ prop, schedule: JSON.stringify(schedule), at }] : [];
    });
    const props = timers.map(({ prop }) => prop);
    await transaction.query({
      name: 'timers-remove',
      text: 'DELETE FROM timer WHERE source_id = $1 AND prop <> ALL($2)',
      values: [sourceId, props],
    });
    if (props.length === 0) return;
    await transaction.query(
      `INSERT INTO timer (source_id, prop, schedule, next_run_at) SELECT $1, * FROM unnest($2::text[], $3::json[], $4::timestamptz[])
       ON CONFLICT (source_id, prop) DO UPDATE SET schedule = excluded.schedule, next_run_at = excluded.next_run_at, resume_at = NULL, asked = NULL
       WHERE timer.schedule::jsonb <> excluded.schedule::jsonb`,
      [sourceId, props, timers.map(({ schedule }) => schedule), timers.map(({ at }) => at)],
    );
  }
}
