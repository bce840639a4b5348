import { Injectable } from '@nestjs/common';
import { isNotFound, type RunRequest, runsAtATime } from '#contracts';
import { CodeCache } from '../components/code-cache.js';
import { DeployedSources } from '../deployments/deployed-sources.js';
import { deployedState } from '../deployments/deployments.repository.js';
import type { DeployedState } from '../deployments/hook-runs.js';
import type { ComponentCode, ComponentDescription } from '../sandbox/sandbox.js';

export const DB_PROP = '$.service.db';

/** A source as a run executes it. */
export interface RunSource {
  state: DeployedState;
  /** How many of its last runs in a row have ended their process; 0 for a hook. */
  killsInRow: number;
  component: ComponentCode;
  description: ComponentDescription;
}

/** A source whose code the catalog does not have, for example because it was restored from an older backup. */
export type SourceWithoutCode = Pick<RunSource, 'state'> & { component: null };

/** Finds what a run executes: the source as it is now or, for a hook, as it was when the hook became due. */
@Injectable()
export class RunSources {
  constructor(
    private readonly sources: DeployedSources,
    private readonly codes: CodeCache,
  ) {}

  /** Undefined if the source does not exist. Throws TimedOut or Unavailable if the code cannot be fetched now. */
  async find(run: RunRequest): Promise<RunSource | SourceWithoutCode | 'inactive' | undefined> {
    const found = run.hook ? { state: hookedState(run)!, killsInRow: 0 } : await this.deployed(run.source_id);
    if (!found) return undefined;
    if (!found.state.active && !run.hook) return 'inactive';
    const code = await this.codes.get(run.owner_id, found.state.deployment.code_hash).catch((error: unknown) => {
      if (isNotFound(error)) return null;
      throw error;
    });
    if (!code) return { state: found.state, component: null };
    // deployed by a version that did not know it
    if (!run.hook && !found.state.deployment.runs_at_a_time) await this.sources.completeOld(found.state, runsAtATime(code.description));
    return { ...found, ...code };
  }

  private async deployed(sourceId: string): Promise<Pick<RunSource, 'state' | 'killsInRow'> | undefined> {
    const row = await this.sources.find(sourceId);
    return row && { state: deployedState(row), killsInRow: row.kills_in_row };
  }
}

const hookedState = ({ source_id, owner_id, hook }: RunRequest): DeployedState | undefined =>
  hook && { source_id, owner_id, active: true, version: hook.version, deployment: hook.deployment };

/** Whether the state that one run leaves matters to the next one, or a request may be executed by another replica than the other runs. */
export const keepsOrder = ({ dedupe, concurrency, configurable_props }: ComponentDescription): boolean =>
  dedupe !== null ||
  (concurrency <= 1 && configurable_props.some(({ type, customResponse }) => type === DB_PROP || customResponse === true));

/** Whether the client gets the component's response only when the events of the run are stored, so that a sender repeats a request whose events are lost. */
export const respondsWhenStored = ({ configurable_props }: ComponentDescription): boolean =>
  configurable_props.some(({ respondWhenStored }) => respondWhenStored === true);
