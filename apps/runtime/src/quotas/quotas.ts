import { Injectable } from '@nestjs/common';
import type { SourceId, UserId } from '#contracts';
import { type OutgoingRecord, Publisher } from '#messaging';
import { RuntimeConfig } from '../runtime.config.js';
import { QuotasRepository } from './quotas.repository.js';

/** The daily quotas (UTC) of accounts. Unlimited unless the operator sets a limit. */
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

  /** Whether the account is below its quotas. */
  async allow(accountId: UserId): Promise<boolean> {
    const { quotas } = this.config;
    if (!quotas) return true;
    const used = await this.quotas.usedToday(accountId);
    return used.compute_ms < quotas.computeMs && used.invocations < quotas.invocations;
  }

  /** Publishes an event that a run was skipped, once per day and source. */
  async notify(sourceId: SourceId, event: OutgoingRecord): Promise<void> {
    if (await this.quotas.firstNoticeToday(sourceId)) await this.publisher.send([event]);
  }
}
