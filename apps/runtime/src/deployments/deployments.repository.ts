import { Injectable } from '@nestjs/common';
import type { SourceId } from '#contracts';
import { Database, Lookups, type Transaction } from '#database';
import { DeploymentRow } from './deployment.entity.js';
import type { DeployedState } from './hook-runs.js';

/** The row in the form that determines hooks: its state and its deployment. */
export const deployedState = ({ source_id, owner_id, active, version, kills_in_row: _, ...deployment }: DeploymentRow): DeployedState => ({
  source_id,
  owner_id,
  active,
  version,
  deployment,
});

@Injectable()
export class DeploymentsRepository {
  // each run and each request at an endpoint begins with one of these
  private readonly byId = new Lookups<string, DeploymentRow>((ids) => this.load('source_id', ids));
  private readonly byEndpoint = new Lookups<string, DeploymentRow>((keys) => this.load('endpoint_key', keys));

  constructor(private readonly database: Database) {}

  find(sourceId: string): Promise<DeploymentRow | undefined> {
    return this.byId.get(sourceId);
  }

  findByEndpoint(endpointKey: string): Promise<DeploymentRow | undefined> {
    return this.byEndpoint.get(endpointKey);
  }

  /** Returns the source, locked until the transaction ends. */
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
      .upsert({ ...(row as object), credentials: row.credentials ?? null, hooks: row.hooks ?? (null as never), kills_in_row: 0 }, [
        'source_id',
      ]);
  }

  /** Deletes the source, and its timers by the foreign key. Its state remains for its last hook. */
  async remove(transaction: Transaction, sourceId: SourceId): Promise<void> {
    await transaction.rows(DeploymentRow).delete({ source_id: sourceId });
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

  private async load(column: 'source_id' | 'endpoint_key', values: string[]): Promise<Map<string, DeploymentRow>> {
    const { rows } = await this.database.query<DeploymentRow>({
      name: `deployments-by-${column}`,
      text: `SELECT * FROM deployment WHERE ${column} = ANY($1)`,
      values: [values],
    });
    return new Map(rows.map((row) => [row[column]!, row]));
  }
}
