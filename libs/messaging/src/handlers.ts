import { applyDecorators, SetMetadata } from '@nestjs/common';
import { EventPattern, MessagePattern } from '@nestjs/microservices';
import type { Command, Fact, Query } from '#contracts';

/** The method handles this command or query: it receives the validated payload, and returns the reply or throws a SluiceError. */
export const Answers = (contract: Command<never, unknown> | Query<never, unknown> | { name: string; payload: unknown }): MethodDecorator =>
  applyDecorators(MessagePattern(contract.name), SetMetadata('contract', contract));

/** The method handles this fact and may receive one twice. If it throws, it is retried; then the record goes to the dead-letter topic. */
export const Hears = (contract: Fact<never> | { topic: string; payload: unknown }): MethodDecorator =>
  applyDecorators(EventPattern<string>(contract.topic), SetMetadata('contract', contract));
