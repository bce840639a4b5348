import { Readable } from 'node:stream';
import { type FieldSelection, selectFields } from './fields.js';

/** The content type of a body that is sent as text. */
export const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * The response body of a list without pages, `{"data": […]}`: text or, if it has more than one chunk, a stream, so that a long list is never in memory as
 * a whole. If reading fails in the middle of a stream, the connection is closed.
 * @param chunks the parts of the list in its order; at least one, which may be empty
 */
export async function listBody(chunks: AsyncGenerator<object[]>, selection: FieldSelection | null): Promise<string | Readable> {
  const dataOf = (items: object[]) =>
    items.map((item) => JSON.stringify(selection === null ? item : selectFields(item as Record<string, unknown>, selection))).join(',');
  const first = (await chunks.next()).value as object[];
  const second = await chunks.next();
  if (second.done) return `{"data":[${dataOf(first)}]}`;
  let separator = '';
  const textOf = (items: object[]): string => {
    if (items.length === 0) return '';
    const text = separator + dataOf(items);
    separator = ',';
    return text;
  };
  return readableOf([first, second.value], chunks, { begin: '{"data":[', textOf, end: () => ']}\n' });
}

/**
 * A response body of many chunks. While the client does not read, one chunk and its text are in memory.
 * @param begun the first chunks; they are removed
 */
export function readableOf<Chunk>(
  begun: Chunk[],
  chunks: AsyncGenerator<Chunk>,
  { begin, textOf, end }: { begin: string; textOf: (chunk: Chunk) => string; end: () => string },
): Readable {
  const next = async (): Promise<string | null> => {
    if (begun.length > 0) return textOf(begun.shift()!);
    const more = await chunks.next();
    return more.done ? null : textOf(more.value);
  };
  async function* text(): AsyncGenerator<string> {
    yield begin;
    // a generator that is suspended keeps its variables, so none of them holds a chunk
    for (let part = await next(); part !== null; part = await next()) {
      if (part !== '') yield part;
    }
    yield end();
  }
  return Readable.from(text(), { objectMode: false });
}
