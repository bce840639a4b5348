import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { hasTooManyParts, Invalid, MAX_JSON_DEPTH, MAX_JSON_PARTS, nestsTooDeeply, type SluiceError, type UserId } from '#contracts';
import { takesEvents, typeProblem } from './content-types.js';
import { scopeProblem } from './scopes.js';

/**
 * Bodies are JSON objects, or events where a route accepts those. An empty body counts as absent regardless of its content type: clients send
 * `Content-Type: application/json` without a body. The body limit is checked before the content type: 413, then 415.
 *
 * @param parsed gets the account and how long its body, valid or not, has occupied the main thread
 */
export function readJsonBodies(fastify: FastifyInstance, parsed: (owner: UserId, ms: number) => void): void {
  // Fastify refuses a malformed type, such as an empty one, before it calls the parser
  fastify.addHook('preParsing', (request, _reply, _payload, done) => {
    if (isEmpty(request) && !takesEvents(request)) delete request.headers['content-type'];
    done();
  });
  fastify.removeAllContentTypeParsers();
  // one parser for all types: Fastify would select one by the beginning of the type, and application/json-seq is not JSON
  fastify.addContentTypeParser('*', (request, _payload, done) => {
    const bytes = request.received?.bytes ?? Buffer.alloc(0);
    const problem = typeProblem(request);
    // an event is stored as it was sent
    if (takesEvents(request)) return problem ? done(unsupported(problem)) : done(null, bytes);
    const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
    if (text.trim() === '') return done(null, undefined);
    if (problem) return done(unsupported(problem));
    // refused later, before the handler runs
    if (scopeProblem(request) !== null) return done(null, undefined);
    const begun = performance.now();
    let body: object | undefined;
    let refusal: SluiceError | null = null;
    try {
      // decoding has replaced other bytes by U+FFFD
      if (!isUtf8(bytes)) throw new Invalid('the body is not UTF-8');
      body = jsonObject(text);
    } catch (error) {
      refusal = error as SluiceError;
    }
    if (request.caller) parsed(request.caller.account.id, performance.now() - begun);
    done(refusal, body);
  });
}

/** @returns undefined for the texts that axios sends as an empty JSON body @throws Invalid if the text is not a JSON object */
function jsonObject(text: string): object | undefined {
  if (hasTooManyParts(text)) throw new Invalid(`the body has more than ${MAX_JSON_PARTS} JSON values and names`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Invalid(`the body is not valid JSON: ${(error as Error).message}`);
  }
  if (value === null || value === '') return undefined;
  if (typeof value !== 'object' || Array.isArray(value)) throw new Invalid('the body must be a JSON object');
  if (nestsTooDeeply(value)) throw new Invalid(`the body is nested deeper than ${MAX_JSON_DEPTH} levels`);
  return value;
}

const isEmpty = ({ received }: FastifyRequest): boolean => !received || received.bytes.length === 0;

const unsupported = (message: string): Error => Object.assign(new Error(message), { statusCode: 415 });
