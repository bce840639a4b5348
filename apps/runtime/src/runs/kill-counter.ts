import { Injectable } from '@nestjs/common';
import { switchOffSource } from '#contracts';
import { Messages } from '#messaging';
import { DeploymentsRepository } from '../deployments/deployments.repository.js';
import type { RunStatus } from '../sandbox/sandbox.js';
import type { RunSource } from './run-sources.js';

/** A source is switched off after this many consecutive runs that ended their process. */
const KILLS_IN_ROW = 3;
const KILLED: RunStatus[] = ['memory', 'crashed', 'killed', 'timeout'];

/** Switches a source off whose runs keep ending their processes. */
@Injectable()
export class KillCounter {
  constructor(
    private readonly deployments: DeploymentsRepository,
    private readonly messages: Messages,
  ) {}

  async count({ state: { source_id, owner_id }, killsInRow }: RunSource, status: RunStatus): Promise<void> {
    const killed = KILLED.includes(status);
    if (!killed && killsInRow === 0) return;
    const kills = await this.deployments.countKill(source_id, killed);
    if (!killed || kills < KILLS_IN_ROW) return;
    const command = { owner_id, id: source_id, reason: `${kills} consecutive runs ended their process; the last one: ${status}` };
    await this.messages.request(switchOffSource, command, { key: owner_id });
  }
}
