import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import {
  AccountRemoval,
  AccountSuspension,
  listSourcesToDelete,
  removeFromCatalog,
  type SourceId,
  type SuspendedEmitters,
  suspendEmitters,
  type UserId,
} from '#contracts';
import { Database } from '#database';
import { Handles, Messages } from '#messaging';
import { ComponentsRepository } from '../components/components.repository.js';
import { announceChanges } from '../announcements/announce-changes.js';
import { CHANGED_TOGETHER, SourcesRepository } from '../sources/sources.repository.js';
import { WorkflowsRepository } from '../workflows/workflows.repository.js';

/** The sources of one list. */
const LISTED = 100;

/** Suspends and removes what accounts have. */
@Controller()
export class AccountsController {
  constructor(
    private readonly database: Database,
    private readonly sources: SourcesRepository,
    private readonly workflows: WorkflowsRepository,
    private readonly components: ComponentsRepository,
    private readonly messages: Messages,
  ) {}

  @Handles(suspendEmitters)
  async suspend(@Payload() { owner_id, suspended }: AccountSuspension): Promise<SuspendedEmitters> {
    // all of them are announced within the time of the command
    const sources = await this.sources.suspend(owner_id, suspended, CHANGED_TOGETHER);
    const workflows = await this.workflows.suspend(owner_id, suspended, CHANGED_TOGETHER);
    await announceChanges(this.messages, [...sources, ...workflows], 'switched');
    // one that was being created meanwhile is found by the next command
    return { sources: sources.length, workflows: workflows.length, more: sources.length > 0 || workflows.length > 0 };
  }

  @Handles(listSourcesToDelete)
  async list(@Payload() { owner_id }: AccountRemoval): Promise<{ data: { id: SourceId }[] }> {
    return { data: await this.sources.ids(owner_id, LISTED) };
  }

  @Handles(removeFromCatalog)
  async remove(@Payload() { owner_id }: AccountRemoval): Promise<{ components: number; workflows: number }> {
    await this.sources.forgetSuspension(owner_id);
    const workflows = await this.removeWorkflows(owner_id);
    const components = await this.database.transaction((transaction) => this.components.removeAll(transaction, owner_id));
    return { components, workflows };
  }

  /** Announces a part at a time, until one is late: an account may have very many, and their facts follow. Returns their number. */
  private async removeWorkflows(ownerId: UserId): Promise<number> {
    for (let [removed, inTime] = [0, true]; ;) {
      const states = await this.workflows.removeNext(ownerId, CHANGED_TOGETHER);
      if (states.length === 0) return removed;
      inTime &&= await announceChanges(this.messages, states, 'deleted');
      removed += states.length;
    }
  }
}
