import type { LargePageRequest } from '#contracts';
import type { PagePart } from '#database';

/** Of a list with large items, in the database: what is parsed, and perhaps decrypted and masked, at a time. Meanwhile, all other requests wait. */
const LISTED_BYTES = 256 * 1024;

/** The part of a page to read, of a list with large items. */
export const listedPart = ({ may_cut, without_total }: LargePageRequest): PagePart => ({
  maxBytes: may_cut ? LISTED_BYTES : undefined,
  withoutTotal: without_total,
});
