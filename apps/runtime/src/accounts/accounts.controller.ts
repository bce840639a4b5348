import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { AccountRemoval, type FullAccount, listFullInRuntime, removeFromRuntime } from '#contracts';
import { Handles } from '#messaging';
import { WaitingData } from '#waiting-data';
import { QueuedRunsRepository } from '../queue/queued-runs.repository.js';
import { QuotasRepository } from '../quotas/quotas.repository.js';

/** The hooks that a reply counts at most. */
const MAX_COUNTED = 1000;

/** Removes and limits what accounts have. */
@Controller()
export class AccountsController {
  constructor(
    private readonly queue: QueuedRunsRepository,
    private readonly quotas: QuotasRepository,
    private readonly waiting: WaitingData,
  ) {}

  @Handles(listFullInRuntime)
  listFull(): FullAccount[] {
    return this.waiting.list();
  }

  @Handles(removeFromRuntime)
  async remove(@Payload() { owner_id }: AccountRemoval): Promise<{ hooks: number }> {
    // the sources are deleted: only their hooks wait
    const hooks = await this.queue.count(owner_id, MAX_COUNTED);
    await this.quotas.deleteUsage(owner_id);
    return { hooks };
  }
}
