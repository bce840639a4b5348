import { Injectable } from '@nestjs/common';
import type { EmitterState, SourceId } from '#contracts';
import type { Transaction } from '#database';
import type { EmitterListener } from '#emitters';
import { nextTick } from '../timers/next-tick.js';
import { DeploymentsRepository } from './deployments.repository.js';

/** Deploys, changes and removes sources as the catalog tells. */
@Injectable()
export class DeploymentsListener implements EmitterListener {
  constructor(private readonly deployments: DeploymentsRepository) {}

  async emitterChanged(transaction: Transaction, { deployment, ...state }: EmitterState): Promise<void> {
    if (state.kind !== 'source' || !deployment) return;
    const sourceId = state.emitter_id as SourceId;
    if (state.deleted) return this.deployments.remove(transaction, sourceId);
    await this.deployments.put(transaction, {
      ...deployment,
      source_id: sourceId,
      owner_id: state.owner_id,
      active: state.active,
      version: state.version,
    });
    const now = new Date();
    await this.deployments.putTimers(transaction, sourceId, state.active ? deployment.schedules : {}, (schedule) =>
      nextTick(schedule, now, now),
    );
  }
}
