import { Injectable } from '@nestjs/common';
import type { Deployment, Schedule, SourceId, UserId } from '#contracts';
import { Database, type Transaction } from '#database';
import type { DeployedState } from './hook-runs.js';

/** A source as it runs. */
export interface DeploymentRow extends Deployment {
  source_id: SourceId;
  owner_id: UserId;
  active: boolean;
  version: number;
  /** Runs in a row that ended their process. */
  kills_in_row: number;
}

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

  /** The source as it is, held until the transaction ends. */
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
    await transaction.query({
      name: 'deployment-put',
      text: `INSERT INTO deployment (source_id, owner_id, active, version, code_hash, configured_props, schedules, endpoint_key, name_slug, hooks)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
       ON CONFLICT (source_id) DO UPDATE SET active = excluded.active, version = excluded.version, code_hash = excluded.code_hash,
         configured_props = excluded.configured_props, schedules = excluded.schedules, endpoint_key = excluded.endpoint_key, name_slug = excluded.name_slug,
         hooks = excluded.hooks, kills_in_row = 0`,
      values: [
        row.source_id,
        row.owner_id,
        row.active,
        row.version,
        row.code_hash,
        JSON.stringify(row.configured_props),
        JSON.stringify(row.schedules),
        row.endpoint_key,
        row.name_slug,
        row.hooks ?? null,
      ],
    });
  }

  /** Removes the source; its timers go with it. What it kept stays for its last hook. */
  async remove(transaction: Transaction, sourceId: string): Promise<void> {
    await transaction.query('DELETE FROM deployment WHERE source_id = $1', [sourceId]);
    await transaction.query('DELETE FROM waiting_emit WHERE source_id = $1', [sourceId]);
  }

  /** Forgets all that a source kept. */
  async forgetKept(transaction: Transaction, sourceId: string): Promise<void> {
    await transaction.query('DELETE FROM source_db WHERE source_id = $1', [sourceId]);
    await transaction.query('DELETE FROM source_dedupe WHERE source_id = $1', [sourceId]);
  }

  /** Counts runs in a row that ended their process; answers how many there are now. */
  async countKill(sourceId: string, killed: boolean): Promise<number> {
    const { rows } = await this.database.query<{ kills_in_row: number }>({
      name: 'deployment-kills',
      text: `UPDATE deployment SET kills_in_row = CASE WHEN $2 THEN kills_in_row + 1 ELSE 0 END WHERE source_id = $1 AND ($2 OR kills_in_row > 0) RETURNING kills_in_row`,
      values: [sourceId, killed],
    });
    return rows[0]?.kills_in_row ?? 0;
  }

  /** Sets the timers: one whose schedule is as it was keeps its next tick. `next` says when a new one ticks first. */
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
