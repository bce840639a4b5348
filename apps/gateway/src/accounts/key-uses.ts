import { type BeforeApplicationShutdown, Inject, Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import type { Id } from '#contracts';
import { LOG, type Log } from '#observability';
import { AccountsRepository } from './accounts.repository.js';

const WRITE_EVERY_MS = 10_000;

/** When keys were last used: collected in memory, and stored periodically by one statement. */
@Injectable()
export class KeyUses implements BeforeApplicationShutdown {
  private uses = new Map<Id<'apiKey'>, Date>();

  constructor(
    private readonly accounts: AccountsRepository,
    @Inject(LOG) private readonly log: Log,
  ) {}

  note(id: Id<'apiKey'>): void {
    this.uses.set(id, new Date());
  }

  /** The last use that is not stored yet; undefined if there was none. */
  last(id: Id<'apiKey'>): Date | undefined {
    return this.uses.get(id);
  }

  @Interval(WRITE_EVERY_MS)
  async write(): Promise<void> {
    const { uses } = this;
    if (uses.size === 0) return;
    this.uses = new Map();
    try {
      await this.accounts.noteUses(uses);
    } catch (error) {
      // they are stored with the next ones
      this.uses = new Map([...uses, ...this.uses]);
      this.log.warn({ err: error }, 'key-uses.not-written');
    }
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.write();
  }
}
