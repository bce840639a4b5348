import type { FastifyInstance, FastifyRequest } from 'fastify';
import { MAX_JSON_DEPTH, nestsTooDeeply, SluiceError } from '#contracts';
import { scopeProblem } from './scopes.js';

export const STRUCTURED_TYPE = 'application/cloudevents+json';
export const BATCH_TYPE = 'application/cloudevents-batch+json';
const TYPES = ['application/json', STRUCTURED_TYPE, BATCH_TYPE];

/** A content type without its parameters, in lower case. */
export const mediaTypeOf = (contentType: string | undefined): string => (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase();

/** The configuration of a route whose body is events: the handler gets the bytes as sent. */
export const EVENT_BODY = { eventBody: true };

/** Whether the route accepts events. */
const takesEvents = ({ routeOptions }: FastifyRequest): boolean =>
  (routeOptions.config as Partial<typeof EVENT_BODY> | undefined)?.eventBody === true;

/** Why a body of this content type is not an event, or null. */
const eventTypeProblem = (contentType: string | undefined): string | null =>
  TYPES.includes(mediaTypeOf(contentType)) ? null : `the body must be ${TYPES.join(', ')}, not ${contentType || 'without a content type'}`;

/** A PATCH is a merge patch (RFC 7396); other kinds of patches are refused rather than misread. */
export const MERGE_PATCH_TYPES = ['application/merge-patch+json', 'application/json'];

/**
 * Bodies are JSON objects, or events where a route accepts those. An empty body counts as absent regardless of its content type: clients send
 * `Content-Type: application/json` without a body. The body limit is checked before the content type: 413, then 415.
 */
export function readJsonBodies(fastify: FastifyInstance): void {
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser(/^application\/(?:[\w.-]+\+)?json/i, { parseAs: 'buffer' }, (request, bytes, done) => {
    const encoding = request.headers['content-encoding'] ?? 'identity';
    if (encoding !== 'identity') return done(unsupported(`the content encoding ${encoding} is not supported`));
    if (takesEvents(request)) return takeEvents(request, bytes as Buffer, done);
    const type = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
    if (request.method === 'PATCH' && !MERGE_PATCH_TYPES.includes(type))
      return done(unsupported(`the body must be ${MERGE_PATCH_TYPES.join(' or ')}, not ${type}`));
    // refused later, before the handler runs
    if (scopeProblem(request) !== null) return done(null, undefined);
    const body = bytes.toString('utf8').replace(/^\uFEFF/, '');
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
  fastify.addContentTypeParser('*', { parseAs: 'buffer' }, (request, bytes, done) => {
    if (takesEvents(request)) return takeEvents(request, bytes as Buffer, done);
    if (bytes.toString('utf8').trim() === '') return done(null, undefined);
    done(unsupported(`the body must be application/json, not ${request.headers['content-type'] ?? 'without a content type'}`));
  });
}

/** Returns the bytes unparsed: an event is stored as it was sent. */
function takeEvents(request: FastifyRequest, bytes: Buffer, done: (error: Error | null, body?: unknown) => void): void {
  const problem = eventTypeProblem(request.headers['content-type']);
  if (problem) done(unsupported(problem));
  else done(null, bytes);
}

const unsupported = (message: string): Error => Object.assign(new Error(message), { statusCode: 415 });
