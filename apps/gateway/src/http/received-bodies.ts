import type { FastifyInstance } from 'fastify';
import { SluiceError, TooManyRequests, type UserId } from '#contracts';
import { BodyBuffer, continueBody, memoryBytes } from '#http-server';
import { SumPerKey } from '#limits';
import { endOf } from './work-in-progress.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** The body as the client has sent it; absent if there is none. */
    received?: BodyBuffer;
  }
}

/** Of the bodies of one account that are being received or handled: they must not fill the memory. */
const MAX_BYTES_PER_ACCOUNT = 64 * 1024 * 1024;
/** Of the memory of this container or machine, for the bodies of all accounts: the heap and live streams need the rest. */
const SHARE_OF_MEMORY = 0.25;
/** Reading as many costs 0.1 s. */
const MAX_CHUNKS = 65_536;

/**
 * Receives the body of each request before the request waits for anything. Node would keep a body that nobody reads as one object per chunk, which for
 * single bytes needs more than a hundred times the memory of what the client sends.
 *
 *   more than `maxBytes`, or too many chunks ─► 413         the bodies of the account need too much memory ─► 429
 *                                                           those of all accounts do, and this one has more than its share ─► 429
 *
 * @param refused gets the account and the cost of a body that is refused while it is received
 * @param mostOfAll the bytes of the bodies of all accounts
 */
export function receiveBodies(
  fastify: FastifyInstance,
  maxBytes: number,
  refused: (owner: UserId, cost: number) => void,
  mostOfAll = SHARE_OF_MEMORY * memoryBytes(),
): void {
  const inUse = new SumPerKey<UserId>();
  const tooLarge = (): SluiceError => new SluiceError('too_large', `the body is larger than ${maxBytes} bytes`);

  fastify.addHook('preParsing', (request, reply, payload, done) => {
    const { method, headers, caller } = request;
    const declared = headers['content-length'];
    if (!caller || (declared === undefined && headers['transfer-encoding'] === undefined)) return done();
    // no route reads it
    if (method === 'GET' || method === 'HEAD') {
      payload.resume();
      return done();
    }
    const limit = Number(declared ?? maxBytes);
    if (!(limit <= maxBytes)) return done(tooLarge());
    continueBody(request.raw, reply.raw);
    const owner = caller.account.id;
    const body = new BodyBuffer(limit);
    void endOf(request, reply).then(() => inUse.add(owner, -body.capacity));
    const end = (error?: Error): void => {
      payload.off('data', receive).off('end', end).off('error', end);
      request.received = body;
      // the client has closed the connection
      done(error && Object.assign(error, { statusCode: 400 }));
    };
    const refuse = (problem: SluiceError): void => {
      payload.off('data', receive).off('end', end).off('error', end);
      refused(owner, body.cost);
      done(problem);
    };
    const receive = (chunk: Buffer): void => {
      const { capacity } = body;
      if (!body.add(chunk)) return refuse(tooLarge());
      const grown = body.capacity - capacity;
      const sum = grown > 0 ? inUse.add(owner, grown) : 0;
      if (body.chunks > MAX_CHUNKS) return refuse(new SluiceError('too_large', `the body has more than ${MAX_CHUNKS} chunks`));
      if (sum > MAX_BYTES_PER_ACCOUNT)
        return refuse(new TooManyRequests('too many requests with large bodies are in progress for this account'));
      if (grown > 0 && inUse.exceedsShare(owner, mostOfAll))
        refuse(new TooManyRequests('too many requests with large bodies are in progress'));
    };
    payload.on('data', receive).on('end', end).on('error', end);
  });
}
