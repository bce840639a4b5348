import type { INestApplication } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { finalize } from 'rxjs';
import { closeOf } from '#http-server';

declare module 'fastify' {
  interface FastifyRequest {
    /** Settles when the work for the request has ended; present if something waits for that. */
    work?: PromiseWithResolvers<void>;
  }
}

/** Notices the end of the work for each request. Call it before other hooks of `onSend` are added: this one runs even if they fail. */
export function noticeEndOfWork(app: INestApplication, fastify: FastifyInstance): void {
  // a hook has refused it
  fastify.addHook('onSend', ({ work }, _reply, payload, done) => {
    work?.resolve();
    done(null, payload);
  });
  // its handler has ended; Nest sends no stream to a client that has disconnected
  app.useGlobalInterceptors({
    intercept: (context, next) => next.handle().pipe(finalize(() => context.switchToHttp().getRequest<FastifyRequest>().work?.resolve())),
  });
}

/**
 * Resolves when the response is closed and the work for the request has ended. A client that disconnects does not end the work: other services continue it,
 * and the body of the request stays in memory.
 */
export async function endOf(request: FastifyRequest, { raw }: FastifyReply): Promise<void> {
  request.work ??= Promise.withResolvers();
  await Promise.all([closeOf(raw), request.work.promise]);
}

/** Ends a request whose client has disconnected before the work began. */
export function abandon(request: FastifyRequest, reply: FastifyReply): void {
  reply.hijack();
  request.work?.resolve();
}
