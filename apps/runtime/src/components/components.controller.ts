import { Controller } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import {
  BundleComponent,
  bundleComponent,
  InspectComponent,
  type InspectedComponent,
  inspectComponent,
  Invalid,
  TimedOut,
  TooManyRequests,
  type UserId,
} from '#contracts';
import { AccountPace, RUN_UNITS } from '#fairness';
import { CallerGone, TooMuchWaiting } from '#limits';
import { deadlineOf, Handles, LogRecord } from '#messaging';
import { ComponentRejected, Sandbox } from '../sandbox/sandbox.js';
import { TooMuchDownloaded } from '../sandbox/packages/download-quota.js';
import { inspectComponent as inspect } from './inspect-component.js';

/** Describes components to the catalog, by their code. */
@Controller()
export class ComponentsController {
  constructor(
    private readonly sandbox: Sandbox,
    private readonly pace: AccountPace,
  ) {}

  @Handles(inspectComponent)
  async inspect(@Payload() { code, owner_id: accountId }: InspectComponent, @Ctx() record: LogRecord): Promise<InspectedComponent> {
    await this.turn(accountId);
    const caller = { accountId, until: deadlineOf(record) };
    const { packed: bundle, description } = await acceptable('component_code', () => inspect(this.sandbox, code, caller));
    return bundle === undefined ? description : { ...description, bundle };
  }

  @Handles(bundleComponent)
  async bundle(@Payload() { entry, files, owner_id: accountId }: BundleComponent, @Ctx() record: LogRecord): Promise<{ code: string }> {
    await this.turn(accountId);
    const caller = { accountId, until: deadlineOf(record) };
    return { code: await acceptable('component_url', () => this.sandbox.bundle({ entry, files }, caller)) };
  }

  /** Resolves when it is the account's turn. Throws TooManyRequests while too many of its inspections wait. */
  private async turn(account: UserId | undefined): Promise<void> {
    if (account === undefined || (await this.pace.requestTurn(account, RUN_UNITS))) return;
    throw new TooManyRequests('too many components of this account are waiting to be inspected; try again in a moment');
  }
}

/** Problems of a component are shown to the user. */
async function acceptable<T>(field: string, look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (error) {
    if (error instanceof TooMuchWaiting)
      throw new TooManyRequests('too many components are waiting to be inspected; try again in a moment');
    if (error instanceof TooMuchDownloaded) throw new TooManyRequests(error.message);
    if (error instanceof CallerGone) throw new TimedOut(error.message);
    if (!(error instanceof ComponentRejected)) throw error;
    throw new Invalid([{ field, message: `the component is invalid: ${error.message}` }]);
  }
}
