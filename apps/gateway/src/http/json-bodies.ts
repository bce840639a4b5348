import type { FastifyInstance } from 'fastify';
import { MAX_JSON_DEPTH, nestsTooDeeply, SluiceError } from '#contracts';

/**
 * Bodies are JSON objects. An empty body is none, whatever its content type says: clients send
 * `Content-Type: application/json` with nothing behind it. The body limit comes before the content type: 413, then 415.
 */
export function readJsonBodies(fastify: FastifyInstance): void {
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser(/^application\/(?:[\w.-]+\+)?json/i, { parseAs: 'string' }, (request, text, done) => {
    const encoding = request.headers['content-encoding'] ?? 'identity';
    if (encoding !== 'identity') return done(unsupported(`the content encoding ${encoding} is not supported`));
    const body = (text as string).replace(/^\uFEFF/, '');
    if (body.trim() === '') return done(null, undefined);
    try {
      const value: unknown = JSON.parse(body);
      if (value === null || typeof value !== 'object' || Array.isArray(value))
        return done(new SluiceError('invalid', 'the body must be a JSON object'));
      if (nestsTooDeeply(value)) return done(new SluiceError('invalid', `the body is nested deeper than ${MAX_JSON_DEPTH} levels`));
      done(null, value);
    } catch (error) {
      done(new SluiceError('invalid', `the body is not valid JSON: ${(error as Error).message}`));
    }
  });
  fastify.addContentTypeParser('*', { parseAs: 'string' }, (request, text, done) => {
    if ((text as string).trim() === '') return done(null, undefined);
    done(unsupported(`the body must be application/json, not ${request.headers['content-type'] ?? 'without a content type'}`));
  });
}

const unsupported = (message: string): Error => Object.assign(new Error(message), { statusCode: 415 });
