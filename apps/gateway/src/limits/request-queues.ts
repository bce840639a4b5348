import type { FastifyContextConfig, FastifyInstance, FastifyRequest } from 'fastify';
import type { UserId } from '#contracts';
import { QueuePerKey } from '#limits';
import { sendBusy } from '../http/problem.js';
import { abandon, endOf } from '../http/work-in-progress.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Where its requests wait; default: `usual`. */
    queue?: 'slow' | 'none';
  }
}

/** The configuration of a route that waits long by nature: for users' code, for other systems, or for the log to be read. */
export const SLOW = { queue: 'slow' } satisfies FastifyContextConfig;
/** The configuration of a route whose requests are limited in another way. */
export const UNQUEUED = { queue: 'none' } satisfies FastifyContextConfig;

const MAX_WAITING = 1000;
/** How many requests of an account are in progress at a time, while other accounts have some, too, and otherwise. */
const IN_PROGRESS = { usual: { shared: 8, alone: 64 }, slow: { shared: 16, alone: 64 } };
/** An account is alone when no other one has sent a request for this long. */
const SHARED_MS = 5000;

const queueOf = ({ routeOptions }: FastifyRequest) => routeOptions.config.queue ?? 'usual';

/**
 * Most of the work for a request is done by other services, which do it for all accounts in the order in which it arrives. So only a few requests of an
 * account are in progress at a time in each gateway: each until its response is sent or, if its client disconnects, until its work has ended. The others
 * wait here. Slow ones do not delay the rest. An account that is alone has more: together, they need less CPU time each.
 */
export function queueRequests(fastify: FastifyInstance): void {
  const sharing = new Sharing();
  const newQueue = ({ shared, alone }: { shared: number; alone: number }) =>
    new QueuePerKey<UserId>(() => (sharing.isAlone ? alone : shared), MAX_WAITING);
  const queues = { usual: newQueue(IN_PROGRESS.usual), slow: newQueue(IN_PROGRESS.slow), none: undefined };
  // with a callback: publishing is the hot path, and does not wait here
  fastify.addHook('preParsing', (request, reply, _payload, done) => {
    if (!request.caller) return done();
    const ownerId = request.caller.account.id;
    sharing.see(ownerId);
    const queue = queues[queueOf(request)];
    if (!queue) return done();
    if (reply.raw.destroyed) return abandon(request, reply);
    const place = queue.join(ownerId);
    if (!place) return void sendBusy(reply, 'too many requests of this account are waiting');
    const stopWaiting = (): void => abandon(request, reply);
    reply.raw.once('close', stopWaiting);
    void place.turn.then(() => {
      reply.raw.off('close', stopWaiting);
      done();
    });
    void endOf(request, reply).then(() => place.leave());
  });
}

/** Notices whether several accounts send requests. */
export class Sharing {
  private last: UserId | undefined;
  private sharedUntil = -Infinity;

  get isAlone(): boolean {
    return performance.now() >= this.sharedUntil;
  }

  see(account: UserId): void {
    if (this.last !== undefined && account !== this.last) this.sharedUntil = performance.now() + SHARED_MS;
    this.last = account;
  }
}
