import type { FastifyContextConfig, FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The body is events. */
    eventBody?: boolean;
  }
}

export const STRUCTURED_TYPE = 'application/cloudevents+json';
export const BATCH_TYPE = 'application/cloudevents-batch+json';
const EVENT_TYPES = ['application/json', STRUCTURED_TYPE, BATCH_TYPE];

/** A content type without its parameters, in lower case. */
export const mediaTypeOf = (contentType: string | undefined): string => (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase();

/** The configuration of a route whose body is events: the handler gets the bytes as sent. */
export const EVENT_BODY = { eventBody: true } satisfies FastifyContextConfig;

/** Whether the route accepts events. */
export const takesEvents = ({ routeOptions }: FastifyRequest): boolean => routeOptions.config.eventBody === true;

/** A PATCH is a merge patch (RFC 7396); other kinds of patches are refused rather than misread. */
export const MERGE_PATCH_TYPES = ['application/merge-patch+json', 'application/json'];

function typesFor(request: FastifyRequest): string[] {
  if (takesEvents(request)) return EVENT_TYPES;
  return request.method === 'PATCH' ? MERGE_PATCH_TYPES : ['application/json'];
}

/** Why a body is not of a type that the route accepts, or null. */
export function typeProblem(request: FastifyRequest): string | null {
  const { 'content-type': type, 'content-encoding': encoding = 'identity' } = request.headers;
  const types = typesFor(request);
  if (!type) return `the header Content-Type is missing; it must be ${types.join(' or ')}`;
  if (!types.includes(mediaTypeOf(type))) return `the body must be ${types.join(' or ')}, not ${type}`;
  // case-insensitive (RFC 9110, 8.4.1); an empty list has no coding
  return /^(identity)?$/i.test(encoding) ? null : `the content encoding ${encoding} is not supported`;
}
