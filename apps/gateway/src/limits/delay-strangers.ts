import type { FastifyInstance, FastifyReply } from 'fastify';
import { BYTES_PER_UNIT, REQUEST_UNITS } from '#fairness';
import { GuessDelay } from '#http-server';

/**
 * Delays responses to callers without an account, whose requests nothing else limits: guesses of keys, unknown paths, the documentation. Large responses count
 * more. A browser that loads the documentation for the first time uses less than half of what is sent without a delay.
 */
export function delayStrangers(fastify: FastifyInstance): void {
  const delay = new GuessDelay();
  fastify.addHook('onSend', (request, reply, payload, done) => {
    // while the database is down, nobody knows who is a stranger
    if (request.caller || reply.statusCode >= 500) return done(null, payload);
    const bytes = request.method === 'HEAD' ? 0 : bytesOf(reply, payload);
    const units = REQUEST_UNITS + bytes / BYTES_PER_UNIT;
    void delay.pass(request.raw.socket.remoteAddress, units).then(() => done(null, payload));
  });
}

/** A file is a stream, of which Fastify knows the length before. */
const bytesOf = (reply: FastifyReply, payload: unknown): number =>
  Number(reply.getHeader('content-length') ?? (payload as string | Buffer | null | undefined)?.length ?? 0);
