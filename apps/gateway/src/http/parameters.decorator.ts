import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { Invalid } from '#contracts';
import { unknownFields } from './request.pipe.js';

/**
 * Parameters that come in the query string and are accepted in a JSON body too: the query wins. Unknown names are refused in the body and ignored in the
 * query.
 *
 * @param contract the class of the parameters
 */
export const Parameters = createParamDecorator(
  (contract: abstract new (...args: never[]) => unknown, context: ExecutionContext): Record<string, unknown> => {
    const { body, query } = context.switchToHttp().getRequest<FastifyRequest>();
    const unknown = unknownFields(contract, body);
    if (unknown.length > 0) throw new Invalid(unknown);
    return { ...(body as object | undefined), ...(query as object) };
  },
);
