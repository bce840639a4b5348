import { Injectable } from '@nestjs/common';
import { EVENTS_TOPIC, type SourceId, type UserId } from '#contracts';
import { Publisher } from '#messaging';
import { plainError } from '../runs/run-effects.js';
import { deploymentIdOf, type DueRun, errorRecord } from '../runs/run-events.js';
import { RuntimeConfig } from '../runtime.config.js';
import { QuotasRepository } from './quotas.repository.js';

/** What accounts may use of a day (UTC). Unlimited unless the operator wants it otherwise. */
@Injectable()
export class Quotas {
  constructor(
    private readonly quotas: QuotasRepository,
    private readonly config: RuntimeConfig,
    private readonly publisher: Publisher,
  ) {}

  get counted(): boolean {
    return this.config.quotas !== null;
  }

  /** Whether the account may run something. */
  async allow(accountId: UserId): Promise<boolean> {
    const { quotas } = this.config;
    if (!quotas) return true;
    const used = await this.quotas.usedToday(accountId);
    return used.compute_ms < quotas.computeMs && used.invocations < quotas.invocations;
  }

  /** Reports on the `$errors` stream of the source that a run was skipped; once a day. */
  async notify(run: DueRun, sourceId: SourceId): Promise<void> {
    if (!(await this.quotas.firstNoticeToday(sourceId))) return;
    const error = plainError('QuotaExceeded', "the account's daily quota is used up; the source will run again from 00:00 UTC");
    await this.publisher.send([{ topic: EVENTS_TOPIC, ...errorRecord(run, error, deploymentIdOf(sourceId)) }]);
  }
}
