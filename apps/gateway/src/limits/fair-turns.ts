import type { FastifyInstance } from 'fastify';
import { type AccountPace, BYTES_PER_UNIT, REQUEST_UNITS } from '#fairness';

/** While the machine is saturated, the requests of the accounts that use more than their share wait for their turns, after their bodies were received. */
export function takeTurns(fastify: FastifyInstance, pace: AccountPace): void {
  fastify.addHook('preParsing', async ({ caller, received }) => {
    if (caller) await pace.delayRequest(caller.account.id, REQUEST_UNITS + (received?.cost ?? 0) / BYTES_PER_UNIT);
  });
}
