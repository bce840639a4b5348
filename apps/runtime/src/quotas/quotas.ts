import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { SourceId, UserId } from '#contracts';
import type { AccountRecord } from '#outbox';
import { RuntimeConfig } from '../runtime.config.js';
import { QuotasRepository, type UsedAndWaiting } from './quotas.repository.js';

/** How long what an account has used is known, for requests. */
const RECENT_MS = 1000;
/** An admitted run is stored within this time: it waits in the queue, or has ended. One that was dropped with its source never is. */
const STORED_WITHIN_MS = 15 * 60_000;

/** The runs that count when another one is admitted. */
interface Admissions extends Pick<UsedAndWaiting, 'compute_ms' | 'runs'> {
  /** The runs that this replica has admitted and that are not stored yet, with the time of admission. */
  admitted: Map<string, number>;
}

/** The daily quotas (UTC) of accounts. Unlimited unless the operator sets a limit. */
@Injectable()
export class Quotas {
  private readonly recent = new LRUCache<UserId, Admissions>({
    max: 10_000,
    ttl: RECENT_MS,
    fetchMethod: (accountId, before) => this.read(accountId, before),
    noDeleteOnFetchRejection: true,
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

  /**
   * Admits the run of a request if the account is below its quotas. Runs that wait count: an admitted run is executed, even if others use up the quota before
   * its turn comes. The run time of waiting runs is unknown, and does not count. Costs a statement per account and second.
   */
  async admit(accountId: UserId, runId: string): Promise<boolean> {
    const { quotas } = this.config;
    if (!quotas) return true;
    const { compute_ms, runs, admitted } = (await this.recent.fetch(accountId))!;
    // a repeated request
    if (admitted.has(runId)) return true;
    if (compute_ms >= quotas.computeMs || runs + admitted.size >= quotas.invocations) return false;
    admitted.set(runId, performance.now());
    return true;
  }

  private async read(accountId: UserId, before: Admissions | undefined): Promise<Admissions> {
    const admitted = before?.admitted ?? new Map<string, number>();
    const { stored, ...used } = await this.quotas.usedAndWaiting(accountId, [...admitted.keys()], this.config.quotas!.invocations);
    const now = performance.now();
    for (const [id, since] of admitted) if (stored.has(id) || now - since > STORED_WITHIN_MS) admitted.delete(id);
    return { ...used, admitted };
  }

  /** Reports that a run was skipped or refused, once per day and source. Returns whether it was the first time. */
  notify(sourceId: SourceId, event: AccountRecord): Promise<boolean> {
    return this.quotas.addNotice(sourceId, event);
  }
}
