import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';

/** Parameters that come in the query string and are accepted in a JSON body too: the query wins. */
export const Parameters = createParamDecorator((_: unknown, context: ExecutionContext): Record<string, unknown> => {
  const { body, query } = context.switchToHttp().getRequest<FastifyRequest>();
  return { ...(body as object | undefined), ...(query as object) };
});
