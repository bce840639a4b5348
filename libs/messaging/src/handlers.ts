import { applyDecorators, SetMetadata } from '@nestjs/common';
import { EventPattern, MessagePattern } from '@nestjs/microservices';
import type { Command, Fact, Query } from '#contracts';

/** The method answers this command or query: it gets the payload, validated, and returns the reply or throws a SluiceError. */
export const Answers = (contract: Command<never, unknown> | Query<never, unknown> | { name: string; payload: unknown }): MethodDecorator =>
  applyDecorators(MessagePattern(contract.name), SetMetadata('contract', contract));

/** The method takes this fact; it may see one twice. A throw is tried again, then the record goes to the dead-letter topic. */
export const Hears = (contract: Fact<never> | { topic: string; payload: unknown }): MethodDecorator =>
  applyDecorators(EventPattern<string>(contract.topic), SetMetadata('contract', contract));
