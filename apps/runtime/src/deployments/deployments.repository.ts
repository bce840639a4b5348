import { Injectable } from '@nestjs/common';
import type { SourceId } from '#contracts';
import { Database, Lookups, type Transaction } from '#database';
import { type AccountRecord, addToOutbox } from '#outbox';
import { DeploymentRow } from './deployment.entity.js';
import type { DeployedState } from './hook-runs.js';

/** A source is switched off after this many consecutive runs that ended their process. */
export const KILLS_IN_ROW = 3;

/** The row in the form that determines hooks: its state and its deployment. */
export const deployedState = ({
  source_id,
  owner_id,
  active,
  suspended,
  version,
  kills_in_row: _,
  ...deployment
}: DeploymentRow): DeployedState => ({
  source_id,
  owner_id,
  active,
  suspended,
  version,
  deployment,
});

/** The only writer of the table `deployment`. */
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

  /** Returns the sources by id, locked until the transaction ends. */
  async lock(transaction: Transaction, sourceIds: string[]): Promise<Map<string, DeploymentRow>> {
    if (sourceIds.length === 0) return new Map();
    const { rows } = await transaction.query<DeploymentRow>({
      name: 'deployments-lock',
      text: 'SELECT * FROM deployment WHERE source_id = ANY($1) ORDER BY source_id FOR UPDATE',
      values: [sourceIds],
    });
    return new Map(rows.map((row) => [row.source_id, row]));
  }

  /** Writes the newest states of sources. Prepared SQL: each change of a source waits for it, and many new sources share a statement. */
  async put(transaction: Transaction, rows: Omit<DeploymentRow, 'kills_in_row'>[]): Promise<void> {
    if (rows.length === 0) return;
    await transaction.query({
      name: 'deployments-put',
      text: `INSERT INTO deployment (source_id, owner_id, active, version, code_hash, configured_props, credentials, schedules, endpoint_key, name_slug, hooks, runs_at_a_time, suspended)
             SELECT source_id, owner_id, active, version, code_hash, configured_props, credentials, schedules, endpoint_key, name_slug, hooks, runs_at_a_time,
                    coalesce(suspended, false)
             FROM json_populate_recordset(NULL::deployment, $1)
             ON CONFLICT (source_id) DO UPDATE SET owner_id = excluded.owner_id, active = excluded.active, version = excluded.version,
               code_hash = excluded.code_hash, configured_props = excluded.configured_props, credentials = excluded.credentials,
               schedules = excluded.schedules, endpoint_key = excluded.endpoint_key, name_slug = excluded.name_slug, hooks = excluded.hooks,
               runs_at_a_time = excluded.runs_at_a_time, suspended = excluded.suspended, kills_in_row = 0`,
      values: [JSON.stringify(rows)],
    });
  }

  /** Sets how many runs may be in progress, if that is unknown and the source still has this code. */
  async setRunsAtATime(sourceId: SourceId, codeHash: string, runsAtATime: number): Promise<void> {
    await this.database.query(
      'UPDATE deployment SET runs_at_a_time = $3 WHERE source_id = $1 AND code_hash = $2 AND runs_at_a_time IS NULL',
      [sourceId, codeHash, runsAtATime],
    );
  }

  /** Deletes the source, and its timers by the foreign key. Its state remains for its last hook. */
  async remove(transaction: Transaction, sourceId: SourceId): Promise<void> {
    await transaction.query({ name: 'deployments-remove', text: 'DELETE FROM deployment WHERE source_id = $1', values: [sourceId] });
  }

  /**
   * Counts a run of this version that ended its process; returns how many there were in a row. Returns 0 for another version, and for a run that is not in a
   * row with the last one, because that was counted meanwhile. `report`: of an active source, stored with the count that makes it one to
   * switch off.
   *
   * @param before how many there were when the source was looked up for the run
   */
  async countKill(
    { source_id, version }: Pick<DeploymentRow, 'source_id' | 'version'>,
    before: number,
    report: () => AccountRecord,
  ): Promise<number> {
    return this.database.transaction(async (transaction) => {
      const { rows } = await transaction.query<{ kills_in_row: number; active: boolean }>(
        `UPDATE deployment SET kills_in_row = kills_in_row + 1
         WHERE source_id = $1 AND version = $2 AND kills_in_row <= $3 RETURNING kills_in_row, active`,
        [source_id, version, before],
      );
      const { kills_in_row: kills = 0, active } = rows[0] ?? {};
      if (active && kills === KILLS_IN_ROW) await addToOutbox(transaction, [report()]);
      return kills;
    });
  }

  /** A run did not end its process. A source that is about to be switched off stays one. */
  async resetKills(sourceId: string): Promise<void> {
    await this.database.query({
      name: 'kills-reset',
      text: 'UPDATE deployment SET kills_in_row = 0 WHERE source_id = $1 AND kills_in_row > 0 AND kills_in_row < $2',
      values: [sourceId, KILLS_IN_ROW],
    });
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
