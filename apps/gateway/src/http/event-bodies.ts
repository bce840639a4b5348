import type { FastifyRequest } from 'fastify';

export const STRUCTURED_TYPE = 'application/cloudevents+json';
export const BATCH_TYPE = 'application/cloudevents-batch+json';
const TYPES = ['application/json', STRUCTURED_TYPE, BATCH_TYPE];

/** A content type without its parameters, in lower case. */
export const mediaTypeOf = (contentType: string | undefined): string => (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase();

/** The configuration of a route whose body is events: the handler gets the bytes as sent. */
export const EVENT_BODY = { eventBody: true };

/** Whether the route accepts events. */
export const takesEvents = ({ routeOptions }: FastifyRequest): boolean =>
  (routeOptions.config as Partial<typeof EVENT_BODY> | undefined)?.eventBody === true;

/** Why a body of this content type is not an event, or null. */
export const eventTypeProblem = (contentType: string | undefined): string | null =>
  TYPES.includes(mediaTypeOf(contentType)) ? null : `the body must be ${TYPES.join(', ')}, not ${contentType || 'without a content type'}`;
