import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import {
  BundleComponent,
  bundleComponent,
  InspectComponent,
  type InspectedComponent,
  inspectComponent,
  Invalid,
  TimedOut,
  TooManyRequests,
  Unavailable,
} from '#contracts';
import { Handles } from '#messaging';
import { ComponentRejected, Sandbox, SandboxUnavailable } from '../sandbox/sandbox.js';
import { TooMuchDownloaded } from '../sandbox/packages/download-quota.js';
import { CallerGone, TooMuchWaiting } from '../sandbox/processes/fair-slots.js';
import { inspectComponent as inspect } from './inspect-component.js';

/** Describes components to the catalog, by their code. */
@Controller()
export class ComponentsController {
  constructor(private readonly sandbox: Sandbox) {}

  @Handles(inspectComponent)
  async inspect(@Payload() { code, owner_id: accountId, answer_by: until }: InspectComponent): Promise<InspectedComponent> {
    const { packed: bundle, description } = await acceptable('component_code', () => inspect(this.sandbox, code, { accountId, until }));
    return bundle === undefined ? description : { ...description, bundle };
  }

  @Handles(bundleComponent)
  async bundle(@Payload() { entry, files, owner_id: accountId, answer_by: until }: BundleComponent): Promise<{ code: string }> {
    return { code: await acceptable('component_url', () => this.sandbox.bundle({ entry, files }, { accountId, until })) };
  }
}

/** Problems of a component are shown to the user. */
async function acceptable<T>(field: string, look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (error) {
    if (error instanceof TooMuchWaiting || error instanceof TooMuchDownloaded) throw new TooManyRequests(error.message);
    if (error instanceof CallerGone) throw new TimedOut(error.message);
    if (error instanceof SandboxUnavailable) throw new Unavailable(error.message);
    if (!(error instanceof ComponentRejected)) throw error;
    throw new Invalid([{ field, message: `the component is invalid: ${error.message}` }]);
  }
}
