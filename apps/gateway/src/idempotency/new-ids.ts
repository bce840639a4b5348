import { createHash } from 'node:crypto';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { type Id, idFrom, type IdKind, ksuid, newId } from '#contracts';
import type { HeldKey } from './idempotency.repository.js';

/**
 * Ids of what a request with an `Idempotency-Key` makes, the same at each attempt: an attempt that failed with a 5xx may have taken effect, or take effect
 * later. The time of the first attempt distinguishes it from a request that uses the key again after its expiry. `part`: which of the request's ids.
 */
function bytesOf({ accountId, key, fingerprint }: HeldKey, part: string | number): Buffer {
  return createHash('sha256').update(`${accountId} ${key} ${part} `).update(fingerprint).digest();
}

export const repeatableKsuid = (held: HeldKey, index = 0): string => ksuid(held.firstAt.getTime(), bytesOf(held, index).subarray(0, 16));

export const repeatableId = <K extends IdKind>(kind: K, held: HeldKey): Id<K> => idFrom(kind, held.firstAt.getTime(), bytesOf(held, kind));

const heldKeyOf = (context: ExecutionContext): HeldKey | undefined => context.switchToHttp().getRequest<FastifyRequest>().heldKey;

/** The Idempotency-Key that the request holds, if it has one. */
export const Held = createParamDecorator((_: unknown, context: ExecutionContext): HeldKey | undefined => heldKeyOf(context));

/** The id of the resource that the request creates. */
export const NewId = createParamDecorator((kind: IdKind, context: ExecutionContext): string => {
  const held = heldKeyOf(context);
  return held ? repeatableId(kind, held) : newId(kind);
});

/** The id of what the request does once. */
export const NewKsuid = createParamDecorator((_: unknown, context: ExecutionContext): string => {
  const held = heldKeyOf(context);
  return held ? repeatableKsuid(held) : ksuid();
});
