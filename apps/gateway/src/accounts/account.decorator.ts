import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { AccountRow, KeyScope } from './account.entity.js';

/** The caller of a request. */
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

/** The caller of the request; every request below `/v1` has one. */
export const Me = createParamDecorator((_: unknown, context: ExecutionContext): Caller => {
  const { caller } = context.switchToHttp().getRequest<FastifyRequest>();
  if (!caller) throw new Error('a request got past authentication');
  return caller;
});

/** Whether the caller's key may read secrets. */
export const mayReadSecrets = ({ scope }: Caller): boolean => scope === 'write';

/** The account's id: the first argument of every query. */
export const OwnerId = createParamDecorator((_: unknown, context: ExecutionContext): string => {
  const { caller } = context.switchToHttp().getRequest<FastifyRequest>();
  if (!caller) throw new Error('a request got past authentication');
  return caller.account.id;
});
