import { Inject, Injectable } from '@nestjs/common';
import type { UserId } from '#contracts';
import { LOG, type Log } from '#observability';
import { Rounds } from '#service';
import { WaitingData } from '#waiting-data';
import { WaitingEmitsRepository, type WaitingPlace } from './waiting-emits.repository.js';
import { WithdrawnEmits } from './withdrawn-emits.js';

const SWEEP_MS = 5000;
const AT_ONCE = 500;
/** The parts of an account that one sweep looks at. The next one continues there. */
const PARTS = 20;

/**
 * Deletes withdrawn emits of accounts whose waiting data has reached its limit. In other accounts they are dropped when they are due, which may be in a
 * year: too late for an owner who has deleted them to make space.
 */
@Injectable()
export class WithdrawnSweep {
  private readonly places = new Map<UserId, WaitingPlace | null>();

  constructor(
    private readonly own: WaitingData,
    private readonly waiting: WaitingEmitsRepository,
    private readonly withdrawn: WithdrawnEmits,
    @Inject(LOG) private readonly log: Log,
  ) {}

  @Rounds(SWEEP_MS, 'waiting-emits.not-swept')
  async sweep(): Promise<void> {
    const full = this.own.list().map(({ owner_id }) => owner_id);
    for (const id of this.places.keys()) if (!full.includes(id)) this.places.delete(id);
    for (const id of full) {
      // the failure of one account does not hold up the others
      await this.sweepAccount(id).catch((err: unknown) => this.log.warn({ account_id: id, err }, 'waiting-emits.not-swept'));
    }
  }

  private async sweepAccount(id: UserId): Promise<void> {
    let dropped = 0;
    for (let part = 0; part < PARTS; part++) {
      const { emits, last } = await this.waiting.ofAccount(id, this.places.get(id) ?? null, AT_ONCE);
      const gone = emits.length === 0 ? [] : await this.withdrawn.among(emits);
      if (gone.length > 0) dropped += (await this.waiting.release(gone, gone)).dropped;
      this.places.set(id, last);
      if (!last) break;
    }
    if (dropped > 0) this.log.info({ account_id: id, dropped }, 'waiting-emits.withdrawn');
  }
}
