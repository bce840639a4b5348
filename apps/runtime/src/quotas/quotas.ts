import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { SourceId, UserId } from '#contracts';
import type { AccountRecord } from '#outbox';
import { RuntimeConfig } from '../runtime.config.js';
import { QuotasRepository } from './quotas.repository.js';

/** How long a verdict is used for requests to endpoints. */
const RECENT_MS = 1000;
const DAY_S = 86_400;

/** The seconds until quotas are reset, at 00:00 UTC. @param now in ms */
export const secondsToReset = (now: number): number => DAY_S - (Math.floor(now / 1000) % DAY_S);

/** The daily quotas (UTC) of accounts. Unlimited unless the operator sets a limit. */
@Injectable()
export class Quotas {
  private readonly recent = new LRUCache<UserId, boolean>({
    max: 10_000,
    ttl: RECENT_MS,
    fetchMethod: (accountId) => this.allow(accountId),
  });

  constructor(
    private readonly quotas: QuotasRepository,
    private readonly config: RuntimeConfig,
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

  /** Whether the account was below its quotas up to a second ago: for requests, which may be many. */
  async allowRequest(accountId: UserId): Promise<boolean> {
    return (await this.recent.fetch(accountId)) ?? false;
  }

  /** Reports that a run was skipped, once per day and source. */
  notify(sourceId: SourceId, event: AccountRecord): Promise<void> {
    return this.quotas.addNotice(sourceId, event);
  }
}
