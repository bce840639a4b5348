import { Controller, Inject } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { createHash } from 'node:crypto';
import { type ComponentDescription, InspectComponent, inspectComponent, Invalid } from '#contracts';
import { Answers } from '#messaging';
import { ComponentRejected } from '../sandbox/component-rejected.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { SANDBOX } from '../sandbox.provider.js';

/** Tells the catalog what a component's code says of itself. */
@Controller()
export class ComponentsController {
  constructor(@Inject(SANDBOX) private readonly sandbox: Sandbox) {}

  @Answers(inspectComponent)
  async inspect(@Payload() { code }: InspectComponent): Promise<ComponentDescription> {
    try {
      return await this.sandbox.inspect({ code, hash: createHash('sha256').update(code, 'utf8').digest('hex') });
    } catch (error) {
      if (!(error instanceof ComponentRejected)) throw error;
      throw new Invalid([{ field: 'component_code', message: `the component's code is not acceptable: ${error.message}` }]);
    }
  }
}
