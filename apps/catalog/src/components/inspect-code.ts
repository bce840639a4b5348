import { inspectComponent, Invalid, isText, NAME_LENGTH, NOT_TEXT, SOURCE_NAME_LENGTH, type UserId } from '#contracts';
import type { Messages } from '#messaging';
import { codeHash, type InspectedCode, inspectedCode } from './component.entity.js';

/** To inspect code, in ms. Packages may have to be installed. The gateway waits longer for a request that also fetches the code. */
export const INSPECT_MS = 50_000;
/** Reserved for storing the component before the caller stops waiting, in ms. */
const STORE_MS = 2_000;

/** In characters. A key is part of indexes, whose rows have at most 2704 bytes. */
const TEXT_LENGTHS = [
  ['name', SOURCE_NAME_LENGTH],
  ['key', NAME_LENGTH],
  ['version', SOURCE_NAME_LENGTH],
] as const;

/**
 * When fetching and inspecting code has to end, in ms since the epoch, so that no component is stored whose caller has received an error.
 *
 * @param deadline when the caller stops waiting. It may be near: the request may have waited in Kafka
 */
export const inspectUntil = (deadline: number): number => Math.min(Date.now() + INSPECT_MS, deadline - STORE_MS);

/**
 * Lets the runtime inspect code, of an account or of the registry. After the time limit, the runtime drops an inspection that has not begun.
 *
 * @param until when it has to end, in ms since the epoch
 * @throws Invalid if it is not the code of a component
 */
export async function inspectCode(
  messages: Pick<Messages, 'request'>,
  code: string,
  { ownerId, until = Date.now() + INSPECT_MS }: { ownerId?: UserId; until?: number } = {},
): Promise<InspectedCode> {
  const timeoutMs = Math.max(until - Date.now(), 0);
  const options = { account: ownerId ?? null, key: ownerId ?? codeHash(code), timeoutMs };
  const inspected = await messages.request(inspectComponent, { code, owner_id: ownerId }, options);
  for (const [field, length] of TEXT_LENGTHS) {
    const text = inspected[field] ?? '';
    if (!isText(text)) throw new Invalid(`the component's ${field} ${NOT_TEXT}`);
    if (text.length > length) throw new Invalid(`the component's ${field} must be at most ${length} characters long`);
  }
  return inspectedCode(code, inspected);
}
