import { createHmac, hash, type KeyObject } from 'node:crypto';
import { ceTypeOf, type EventContext, eventIdOf, isJsonContentType, percentEncoded } from '#events';
import type { Delivery } from '../delivery.js';
import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';

const JSON_CONTENT = 'application/json';

/** The headers of a delivery: Standard Webhooks, and CloudEvents in binary mode with the producer's own attributes. */
export function deliveryHeaders(
  delivery: Delivery,
  { nowMs, keys, userAgent }: { nowMs: number; keys: KeyObject[]; userAgent: string },
): Record<string, string> {
  const id = messageId(delivery);
  const timestamp = Math.floor(nowMs / 1000);
  const eventId = eventIdOf(delivery.place);
  const stream = percentEncoded(ceTypeOf(delivery.stream));
  const headers: Record<string, string> = {
    'content-type': JSON_CONTENT,
    'user-agent': userAgent,
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatureHeader(id, timestamp, delivery.json, keys),
    'ce-specversion': '1.0',
    'ce-id': eventId,
    'ce-source': delivery.emitterId,
    'ce-type': stream,
    'ce-time': timeOf(delivery),
  };
  if (delivery.context) setContext(headers, delivery.context);
  headers['ce-sluiceemitter'] = delivery.emitterId;
  headers['ce-sluiceevent'] = eventId;
  headers['ce-sluicestream'] = stream;
  return headers;
}

/** The producer's attributes take the place of ours. */
function setContext(headers: Record<string, string>, { attributes = {}, traceparent, tracestate }: EventContext): void {
  for (const name in attributes) headers[`ce-${name}`] = percentEncoded(attributes[name] as string);
  const { datacontenttype } = attributes;
  if (datacontenttype !== undefined && isJsonContentType(datacontenttype)) {
    headers['content-type'] = datacontenttype;
    delete headers['ce-datacontenttype'];
  }
  setTrace(headers, 'traceparent', traceparent ?? attributes.traceparent);
  setTrace(headers, 'tracestate', tracestate ?? attributes.tracestate);
}

/** Forwarded verbatim; what cannot stand in a header is no trace context. */
function setTrace(headers: Record<string, string>, name: string, value: string | undefined): void {
  if (value !== undefined && TRACE.test(value)) headers[name] = value;
}

const TRACE = /^[\x20-\x7e]{1,512}$/;

/** RFC 3339, which CloudEvents asks for. */
const TIME = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

/** When the event happened, as the emitter says; what isn't a time gives way to the log's. */
const timeOf = ({ time, place }: Delivery): string =>
  time !== undefined && TIME.test(time) && !Number.isNaN(Date.parse(time)) ? time : new Date(place.ms).toISOString();

/**
 * The `webhook-id`: the receiver's idempotency key. It's made of the emit and not of the event's place, so it's the same
 * over all attempts, and also when a producer's retry put one emit into the log twice. An emit id is unique only with
 * its emitter and stream.
 */
export const messageId = ({
  emitterId,
  stream,
  emitId,
  webhookId,
}: Pick<Delivery, 'emitterId' | 'stream' | 'emitId' | 'webhookId'>): string =>
  `msg_${hash('sha256', `${webhookId}\n${emitterId}\n${stream}\n${emitId}`, 'hex').slice(0, 32)}`;

/**
 * The `webhook-signature` header of Standard Webhooks: HMAC-SHA256 over `<id>.<timestamp>.<body>`, one signature a key.
 * A receiver accepts the message when one of them fits, so two live secrets can overlap.
 *
 * @param timestamp Unix seconds, as the header `webhook-timestamp` has it
 */
export const signatureHeader = (id: string, timestamp: number, body: Buffer, keys: KeyObject[]): string =>
  keys.map((key) => `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`).join(' ');

const file = findPackageJSON(import.meta.url);
const { version } = JSON.parse(file === undefined ? '{}' : readFileSync(file, 'utf8')) as { version?: string };

/** How we call ourselves at webhooks. */
export const USER_AGENT = `Sluice/${version ?? '0'}`;
