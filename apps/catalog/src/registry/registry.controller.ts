import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { cursorOf, idOfCursor, type LargePage, ListRegistry, listRegistry, pageOf, type RegisteredComponent } from '#contracts';
import { Handles } from '#messaging';
import { listedPart } from '../listed-part.js';
import { RegistryRepository } from './registry.repository.js';

@Controller()
export class RegistryController {
  constructor(private readonly registry: RegistryRepository) {}

  @Handles(listRegistry)
  async list(@Payload() request: ListRegistry): Promise<LargePage<RegisteredComponent>> {
    const { limit, after, before, may_cut } = request;
    const page = { limit, after: idOfCursor('component', 'after', after), before: idOfCursor('component', 'before', before) };
    const { rows, total, cut } = await this.registry.page(page, listedPart(request));
    const components = rows.map(({ description: { description, configurable_props }, ...row }) => ({
      ...row,
      description,
      configurable_props,
    }));
    return { ...pageOf(components, total, ({ id }) => cursorOf(id)), ...(may_cut && { cut }) };
  }
}
