import { Injectable } from '@nestjs/common';
import type { Deployment, Schedule, SourceId, UserId } from '#contracts';
import { Database, type Transaction } from '#database';

/** A source as it runs. */
export interface DeploymentRow extends Deployment {
  source_id: SourceId;
  owner_id: UserId;
  active: boolean;
  version: number;
}

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

  /** Writes the newest state and answers the one before. */
  async put(transaction: Transaction, row: DeploymentRow): Promise<DeploymentRow | undefined> {
    const { rows } = await transaction.query<DeploymentRow>('SELECT * FROM deployment WHERE source_id = $1 FOR UPDATE', [row.source_id]);
    await transaction.query(
      `INSERT INTO deployment (source_id, owner_id, active, version, code_hash, configured_props, schedules, endpoint_key, name_slug)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
       ON CONFLICT (source_id) DO UPDATE SET active = excluded.active, version = excluded.version, code_hash = excluded.code_hash,
         configured_props = excluded.configured_props, schedules = excluded.schedules, endpoint_key = excluded.endpoint_key, name_slug = excluded.name_slug`,
      [
        row.source_id,
        row.owner_id,
        row.active,
        row.version,
        row.code_hash,
        JSON.stringify(row.configured_props),
        JSON.stringify(row.schedules),
        row.endpoint_key,
        row.name_slug,
      ],
    );
    return rows[0];
  }

  /** Forgets the source with all that it kept; its timers go with it. */
  async remove(transaction: Transaction, sourceId: string): Promise<void> {
    await transaction.query('DELETE FROM deployment WHERE source_id = $1', [sourceId]);
    await transaction.query('DELETE FROM source_db WHERE source_id = $1', [sourceId]);
    await transaction.query('DELETE FROM source_dedupe WHERE source_id = $1', [sourceId]);
  }

  /** Sets the timers: one whose schedule is as it was keeps its next tick. `next` says when a new one ticks first. */
  async putTimers(
    transaction: Transaction,
    sourceId: SourceId,
    schedules: Record<string, Schedule>,
    next: (schedule: Schedule) => Date | null,
  ): Promise<void> {
    const timers = Object.entries(schedules).flatMap(([prop, schedule]) => {
      const at = next(schedule);
      return at ? [{ prop, schedule: JSON.stringify(schedule), at }] : [];
    });
    const props = timers.map(({ prop }) => prop);
    await transaction.query('DELETE FROM timer WHERE source_id = $1 AND prop <> ALL($2)', [sourceId, props]);
    await transaction.query(
      `INSERT INTO timer (source_id, prop, schedule, next_run_at) SELECT $1, * FROM unnest($2::text[], $3::json[], $4::timestamptz[])
       ON CONFLICT (source_id, prop) DO UPDATE SET schedule = excluded.schedule, next_run_at = excluded.next_run_at
       WHERE timer.schedule::jsonb <> excluded.schedule::jsonb`,
      [sourceId, props, timers.map(({ schedule }) => schedule), timers.map(({ at }) => at)],
    );
  }
}
