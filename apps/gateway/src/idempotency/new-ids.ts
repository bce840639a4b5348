import { createHash } from 'node:crypto';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { type Id, idFrom, type IdKind, ksuid, newId } from '#contracts';
import type { FirstRequest, HeldKey } from './idempotency.repository.js';

/**
 * Ids of what a request with an `Idempotency-Key` makes, the same at each attempt: an attempt that failed with a 5xx may have taken effect, or take effect
 * later. The time of the first attempt distinguishes it from a request that uses the key again after its expiry. `part`: which of the request's ids.
 */
function bytesOf({ accountId, key, fingerprint }: FirstRequest, part: string | number): Buffer {
  return createHash('sha256').update(`${accountId} ${key} ${part} `).update(fingerprint).digest();
}

export const repeatableKsuid = (held: FirstRequest, index = 0): string =>
  ksuid(held.firstAt.getTime(), bytesOf(held, index).subarray(0, 16));

export const repeatableId = <K extends IdKind>(kind: K, held: FirstRequest): Id<K> =>
  idFrom(kind, held.firstAt.getTime(), bytesOf(held, kind));

const requestOf = (context: ExecutionContext): FastifyRequest => context.switchToHttp().getRequest<FastifyRequest>();

function firstRequestOf(context: ExecutionContext): FirstRequest | undefined {
  const { heldKey, repeats } = requestOf(context);
  return heldKey ?? repeats;
}

/** The Idempotency-Key that the request holds, if it has one. */
export const Held = createParamDecorator((_: unknown, context: ExecutionContext): HeldKey | undefined => requestOf(context).heldKey);

/** Whether the request repeats one that has ended, so that it must not act again. Only for routes that are REPEATABLE. */
export const IsRepeat = createParamDecorator((_: unknown, context: ExecutionContext): boolean => requestOf(context).repeats !== undefined);

/** The id of the resource that the request creates. */
export const NewId = createParamDecorator((kind: IdKind, context: ExecutionContext): string => {
  const first = firstRequestOf(context);
  return first ? repeatableId(kind, first) : newId(kind);
});

/** The id of what the request does once. */
export const NewKsuid = createParamDecorator((_: unknown, context: ExecutionContext): string => {
  const first = firstRequestOf(context);
  return first ? repeatableKsuid(first) : ksuid();
});
