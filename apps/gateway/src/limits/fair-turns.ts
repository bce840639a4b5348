import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { LargePageRequest } from '#contracts';
import { type AccountPace, BYTES_PER_UNIT, REQUEST_UNITS } from '#fairness';
import type { Messages } from '#messaging';
import { takesEvents } from '../http/content-types.js';

/** The cost of a request that changes something, beside that of its body: other services store the change, announce it to each other and follow it. */
const CHANGE_UNITS = 3;

/** While the machine is saturated, the requests of the accounts that use more than their share wait for their turns, after their bodies were received. */
export function takeTurns(fastify: FastifyInstance, pace: AccountPace): void {
  fastify.addHook('preParsing', async (request) => {
    const { caller, received } = request;
    if (caller) await pace.delayRequest(caller.account.id, unitsOf(request) + (received?.cost ?? 0) / BYTES_PER_UNIT);
  });
}

/** Publishing is charged for each event. */
const unitsOf = (request: FastifyRequest): number =>
  ['GET', 'HEAD'].includes(request.method) || takesEvents(request) ? REQUEST_UNITS : CHANGE_UNITS;

/** Bytes of a list with large items that cost a unit: both services parse them, and the catalog decrypts some. */
const LISTED_BYTES_PER_UNIT = BYTES_PER_UNIT / 8;

/** A reply to a request of an account costs as much as a body of its size: a page of large events counts as many small requests. */
export function chargeReplies(messages: Messages, pace: AccountPace): void {
  messages.onReply((account, request, bytes) => {
    const { may_cut } = request as Partial<LargePageRequest>;
    pace.spend(account, bytes / (may_cut ? LISTED_BYTES_PER_UNIT : BYTES_PER_UNIT));
  });
}
