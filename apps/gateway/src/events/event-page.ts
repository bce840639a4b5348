import type { EventPage } from '#contracts';
import { type FieldSelection, selectFields } from '../http/fields.js';

/** The page's answer as JSON text. The events' own bytes go through untouched, unless fields are selected. */
export function eventPageJson({ page_info, items }: EventPage, selection: FieldSelection | null): string {
  const data = selection === null ? items : items.map((item) => JSON.stringify(selectFields(JSON.parse(item) as object, selection)));
  return `{"page_info":${JSON.stringify(page_info)},"data":[${data.join(',')}]}`;
}
