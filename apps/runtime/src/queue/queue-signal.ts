import { Injectable } from '@nestjs/common';
import type { UserId } from '#contracts';

/** Notifies the run queue of this process that an account has new waiting runs, which it would otherwise find only when it looks for them. */
@Injectable()
export class QueueSignal {
  private fill: (id: UserId) => Promise<void> = async () => {};

  /** @param fill puts waiting runs of the account into lanes; does not throw */
  listen(fill: (id: UserId) => Promise<void>): void {
    this.fill = fill;
  }

  /** Resolves when the account's hooks are in lanes, and its other waiting runs up to its limits. While hundreds of hooks wait, some of them are not. */
  runsWait(id: UserId): Promise<void> {
    return this.fill(id);
  }
}
