import type { EventPage } from '#contracts';
import { type FieldSelection, selectFields } from '../http/fields.js';

/** The response body of a page, as JSON text. The bytes of the events are not changed unless fields are selected. */
export function eventPageJson({ page_info, items }: EventPage, selection: FieldSelection | null): string {
  const data = selection === null ? items : items.map((item) => JSON.stringify(selectFields(JSON.parse(item) as object, selection)));
  return `{"page_info":${JSON.stringify(page_info)},"data":[${data.join(',')}]}`;
}

/** An event in the format that older clients poll. */
export interface PolledEvent {
  id: string;
  /** Milliseconds. */
  ts: number;
  k: 'emit';
  e: unknown;
}

/** The page in that format, without `page_info`: with it, those clients would loop. */
export function polledEvents({ items }: EventPage): { data: PolledEvent[] } {
  return {
    data: items.map((item) => {
      const { id, indexed_at_ms, event } = JSON.parse(item) as { id: string; indexed_at_ms: number; event: unknown };
      return { id, ts: indexed_at_ms, k: 'emit', e: event };
    }),
  };
}
