import { MAX_JSON_DEPTH, nestsTooDeeply } from './json-nesting.js';

/** How much of an event is shown in an error, in bytes. */
const MAX_BYTES = 256 * 1024;

/** The `original_event` of an error: the event, or `{"$truncated": true}` of one that an event about it can't hold. */
export function originalEvent(json: Buffer | string): unknown {
  const truncated = { $truncated: true };
  if (Buffer.byteLength(json) > MAX_BYTES) return truncated;
  const event: unknown = JSON.parse(json.toString());
  return nestsTooDeeply(event, MAX_JSON_DEPTH - 1) ? truncated : event;
}
