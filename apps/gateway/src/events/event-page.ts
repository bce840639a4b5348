import { Readable } from 'node:stream';
import type { EventPage } from '#contracts';
import { summaryFields } from '#events';
import type { FieldSelection } from '../http/fields.js';

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
  const { include, exclude } = selection ?? { include: null, exclude: null };
  const chosen = Object.entries(fields).filter(([name]) => (include === null || include.has(name)) && !exclude?.has(name));
  return `{${chosen.map(([name, json]) => `"${name}":${json}`).join(',')}}`;
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
  const info = (page: EventPage['page_info']) => (withInfo ? `"page_info":${JSON.stringify(page)},` : '');
  const dataOf = ({ items }: EventPage) => items.map(shown).join(',');
  if (second.done) return `{${info(first.page_info)}"data":[${dataOf(first)}]}`;

  async function* text(): AsyncGenerator<string> {
    let { count, end_cursor } = first.page_info;
    yield `{"data":[${dataOf(first)}`;
    for (let next: IteratorResult<EventPage> = second; !next.done; next = await chunks.next()) {
      count += next.value.items.length;
      end_cursor = next.value.page_info.end_cursor;
      yield `,${dataOf(next.value)}`;
    }
    yield `]${withInfo ? `,"page_info":${JSON.stringify({ ...first.page_info, count, end_cursor })}` : ''}}\n`;
  }
  return Readable.from(text(), { objectMode: false });
}
