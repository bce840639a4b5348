import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { cursorOf, idOfCursor, ListRegistry, listRegistry, type Page, pageOf, type RegisteredComponent } from '#contracts';
import { Handles } from '#messaging';
import { RegistryRepository } from './registry.repository.js';

@Controller()
export class RegistryController {
  constructor(private readonly registry: RegistryRepository) {}

  @Handles(listRegistry)
  async list(@Payload() { limit, after, before }: ListRegistry): Promise<Page<RegisteredComponent>> {
    const page = { limit, after: idOfCursor('component', 'after', after), before: idOfCursor('component', 'before', before) };
    const { rows, total } = await this.registry.page(page);
    const components = rows.map(({ description: { description, configurable_props }, ...row }) => ({
      ...row,
      description,
      configurable_props,
    }));
    return pageOf(components, total, ({ id }) => cursorOf(id));
  }
}
