import type { FastifyInstance } from 'fastify';
import { sendProblem } from './problem.js';

/** Responds with 400 to a query whose percent-encoding is not that of text in UTF-8: the parser would take it literally. */
export function checkQueries(fastify: FastifyInstance): void {
  fastify.addHook('preValidation', (request, reply, done) => {
    if (isDecodable(request.url)) done();
    else sendProblem(reply, { status: 400, detail: 'the query is not percent-encoded UTF-8' });
  });
}

function isDecodable(url: string): boolean {
  const begin = url.indexOf('?');
  if (begin < 0 || !url.includes('%', begin)) return true;
  try {
    decodeURIComponent(url.slice(begin));
    return true;
  } catch {
    return false;
  }
}
