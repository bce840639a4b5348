import { MAX_JSON_DEPTH, nestsTooDeeply } from './json-nesting.js';

/** How much of an event is shown in an error, in bytes. */
const MAX_BYTES = 256 * 1024;

/** The `original_event` of an error: the event, or `{"$truncated": true}` if the event is too large for an error event. */
export function originalEvent(json: Buffer | string): unknown {
  const truncated = { $truncated: true };
  if (Buffer.byteLength(json) > MAX_BYTES) return truncated;
  const event: unknown = JSON.parse(json.toString());
  if (nestsTooDeeply(event, MAX_JSON_DEPTH - 1)) return truncated;
  // serializing can lengthen it: 1e20 becomes 21 digits
  return Buffer.byteLength(JSON.stringify(event)) > MAX_BYTES ? truncated : event;
}
