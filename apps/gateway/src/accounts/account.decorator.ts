import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { AccountRow, KeyScope } from './account.entity.js';

/** Who asks. */
export interface Caller {
  account: AccountRow;
  apiKey: string;
  scope: KeyScope;
}

declare module 'fastify' {
  interface FastifyRequest {
    caller?: Caller;
  }
}

/** The caller of the request; there is one behind every path below `/v1`. */
export const Me = createParamDecorator((_: unknown, context: ExecutionContext): Caller => {
  const { caller } = context.switchToHttp().getRequest<FastifyRequest>();
  if (!caller) throw new Error('a request got past authentication');
  return caller;
});

/** The account's id: what every query names first. */
export const OwnerId = createParamDecorator((_: unknown, context: ExecutionContext): string => {
  const { caller } = context.switchToHttp().getRequest<FastifyRequest>();
  if (!caller) throw new Error('a request got past authentication');
  return caller.account.id;
});
