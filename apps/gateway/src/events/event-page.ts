import type { Readable } from 'node:stream';
import type { EventPage } from '#contracts';
import { summaryFields } from '#events';
import { type FieldSelection, selectFields } from '../http/fields.js';
import { readableOf } from '../http/list-body.js';

/** The JSON text of an event in a page, from that of its summary. */
type Shown = (summary: string) => string;

/** The summary as it is, or its selected fields. The bytes of the event are not changed. */
export const selectedSummary =
  (selection: FieldSelection | null): Shown =>
  (summary) =>
    selection === null ? summary : objectOf(summaryFields(summary), selection);

/** An event in the format that older clients poll: `{id, ts: <ms>, k: "emit", e: <the event>}`. */
export const polledEvent =
  (selection: FieldSelection | null): Shown =>
  (summary) => {
    const { id, indexed_at_ms: ts, event: e } = summaryFields(summary);
    return objectOf({ id, ts, k: '"emit"', e }, selection);
  };

/** @param fields the JSON text of each */
function objectOf(fields: Record<string, string>, selection: FieldSelection | null): string {
  const chosen = selection === null ? fields : selectFields(fields, selection);
  return `{${Object.entries(chosen)
    .map(([name, json]) => `"${name}":${json}`)
    .join(',')}}`;
}

/**
 * The response body of a page: text or, if it is longer than a message of the store, a stream, so that a hundred events of a megabyte are never in memory
 * together. If reading fails in the middle of a stream, the connection is closed.
 * @param chunks the parts of the page in its order
 * @param withInfo false: without `page_info`
 */
export async function eventPageBody(
  chunks: AsyncGenerator<EventPage>,
  shown: Shown,
  { withInfo = true }: { withInfo?: boolean } = {},
): Promise<string | Readable> {
  const first = (await chunks.next()).value as EventPage;
  const second = await chunks.next();
  const dataOf = ({ items }: EventPage): string => items.map(shown).join(',');
  if (second.done) return `{${withInfo ? `"page_info":${JSON.stringify(first.page_info)},` : ''}"data":[${dataOf(first)}]}`;

  let info = { ...first.page_info, count: 0 };
  let separator = '';
  const textOf = (page: EventPage): string => {
    info = { ...info, count: info.count + page.items.length, end_cursor: page.page_info.end_cursor };
    const text = separator + dataOf(page);
    separator = ',';
    return text;
  };
  const end = (): string => `]${withInfo ? `,"page_info":${JSON.stringify(info)}` : ''}}\n`;
  return readableOf([first, second.value], chunks, { begin: '{"data":[', textOf, end });
}
