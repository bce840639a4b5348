import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { createHash } from 'node:crypto';
import {
  BundleComponent,
  bundleComponent,
  type ComponentDescription,
  InspectComponent,
  inspectComponent,
  Invalid,
  TimedOut,
  TooManyRequests,
} from '#contracts';
import { Handles } from '#messaging';
import { ComponentRejected, Sandbox } from '../sandbox/sandbox.js';
import { CallerGone, TooMuchWaiting } from '../sandbox/processes/fair-slots.js';

/** Describes components to the catalog, by their code. */
@Controller()
export class ComponentsController {
  constructor(private readonly sandbox: Sandbox) {}

  @Handles(inspectComponent)
  inspect(@Payload() { code, owner_id: accountId, answer_by: until }: InspectComponent): Promise<ComponentDescription> {
    const hash = createHash('sha256').update(code, 'utf8').digest('hex');
    return acceptable('component_code', () => this.sandbox.inspect({ code, hash }, { accountId, until }));
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
    if (error instanceof TooMuchWaiting) throw new TooManyRequests(error.message);
    if (error instanceof CallerGone) throw new TimedOut(error.message);
    if (!(error instanceof ComponentRejected)) throw error;
    throw new Invalid([{ field, message: `the component is invalid: ${error.message}` }]);
  }
}
