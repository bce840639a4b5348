import { Controller } from '@nestjs/common';
import { Ctx, Payload } from '@nestjs/microservices';
import {
  type Component,
  type ComponentCodeReply,
  CreateComponent,
  createComponent,
  GetCode,
  GetComponent,
  getCode,
  getComponent,
  GetRegisteredComponent,
  getRegisteredComponent,
} from '#contracts';
import { deadlineOf, Handles, LogRecord } from '#messaging';
import { ComponentsService } from './components.service.js';

@Controller()
export class ComponentsController {
  constructor(private readonly components: ComponentsService) {}

  @Handles(createComponent)
  create(@Payload() command: CreateComponent, @Ctx() record: LogRecord): Promise<Component> {
    return this.components.create(command, deadlineOf(record));
  }

  @Handles(getComponent)
  get(@Payload() { owner_id, key_or_id }: GetComponent): Promise<Component> {
    return this.components.get(owner_id, key_or_id);
  }

  @Handles(getRegisteredComponent)
  getRegistered(@Payload() { key }: GetRegisteredComponent): Promise<Component> {
    return this.components.getRegistered(key);
  }

  @Handles(getCode)
  getCode(@Payload() { code_hash }: GetCode): Promise<ComponentCodeReply> {
    return this.components.code(code_hash);
  }
}
