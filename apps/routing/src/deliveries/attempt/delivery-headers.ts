import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { ceTypeOf, emitKeyOf, type EventContext, eventIdOf, isJsonContentType, isTime, percentEncoded, traceToPassOn } from '#events';
import type { SigningKey } from '../../webhooks/signing-secret.js';
import type { Delivery } from '../delivery.js';

const JSON_CONTENT = 'application/json';

/** The headers of a delivery: Standard Webhooks, and CloudEvents in binary mode with the producer's own attributes. */
export function deliveryHeaders(
  delivery: Delivery,
  { nowMs, keys, userAgent }: { nowMs: number; keys: SigningKey[]; userAgent: string },
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

/** The producer's attributes replace those of Sluice. */
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

/** Forwarded verbatim. Only the attribute, and a delivery that an earlier version has parked, can have a value that cannot be a header. */
function setTrace(headers: Record<string, string>, name: string, value: string | undefined): void {
  const passedOn = traceToPassOn(value);
  if (passedOn !== undefined) headers[name] = passedOn;
}

/** When the event happened, as its emitter states; otherwise the time of the record. An earlier version may have parked a delivery with another text. */
const timeOf = ({ time, place }: Delivery): string => (time !== undefined && isTime(time) ? time : textOf(place.ms));

let latest = { ms: NaN, text: '' };

/** The time as RFC 3339 writes it. The last one is kept: all deliveries of an event have the same. */
function textOf(ms: number): string {
  if (latest.ms !== ms) latest = { ms, text: new Date(ms).toISOString() };
  return latest.text;
}

/**
 * The `webhook-id`: the receiver's idempotency key. It is derived from the emit rather than from the event's position, so it is the same in all
 * attempts, and also if a producer's retry wrote the emit twice. An emit id is unique only together with its emitter and stream.
 */
export const messageId = (delivery: Pick<Delivery, 'emitterId' | 'stream' | 'emitId' | 'webhookId'>): string =>
  `msg_${hash('sha256', `${delivery.webhookId}\n${emitKeyOf(delivery)}`, 'hex').slice(0, 32)}`;

/**
 * The `webhook-signature` header of Standard Webhooks: HMAC-SHA256 over `<id>.<timestamp>.<body>`, one signature per key.
 * A receiver accepts the message if one of them is valid, so two secrets can be in use at a time.
 *
 * @param timestamp Unix seconds, as the header `webhook-timestamp` has it
 */
const signatureHeader = (id: string, timestamp: number, body: Buffer, keys: SigningKey[]): string =>
  keys.map((key) => `v1,${key.sign(Buffer.from(`${id}.${timestamp}.`), body)}`).join(' ');

const file = findPackageJSON(import.meta.url);
const { version } = JSON.parse(file === undefined ? '{}' : readFileSync(file, 'utf8')) as { version?: string };

/** The `User-Agent` of deliveries. */
export const USER_AGENT = `Sluice/${version ?? '0'}`;
