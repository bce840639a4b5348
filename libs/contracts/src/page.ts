import { IsBoolean, IsInt, IsOptional, IsString, Max, Min } from 'class-validator';
import { Invalid } from './errors.js';
import { type IdKind, isId } from './ids.js';
import { MayBeDigits } from './values.js';

/** The requested part of a list. Lists are newest first: `after` returns older items, `before` newer ones. */
export class PageRequest {
  @IsOptional()
  @MayBeDigits()
  @IsInt({ message: 'limit must be an integer from 1 to 100' })
  @Min(1, { message: 'limit must be an integer from 1 to 100' })
  @Max(100, { message: 'limit must be an integer from 1 to 100' })
  limit: number = 10;

  @IsOptional()
  @IsString()
  after?: string;

  @IsOptional()
  @IsString()
  before?: string;
}

/** The requested part of a list with large items. */
export class LargePageRequest extends PageRequest {
  /** The page may be cut. */
  @IsOptional() @IsBoolean() may_cut?: boolean;

  /** The page continues another one, so `total_count` may be 0: counting takes time that grows with the collection. */
  @IsOptional() @IsBoolean() without_total?: boolean;
}

/** Cursors are null if the page is empty. */
export interface PageInfo {
  /** Of the whole collection, regardless of the cursors. */
  total_count: number;
  count: number;
  start_cursor: string | null;
  end_cursor: string | null;
}

export interface Page<T> {
  page_info: PageInfo;
  data: T[];
}

export interface LargePage<T> extends Page<T> {
  /** There are fewer items than requested only because more would occupy the services for too long: continue from the cursor. */
  cut?: boolean;
}

/** A page of a list as the API returns it. cursor: returns the cursor of an item. */
export function pageOf<T>(items: T[], totalCount: number, cursor: (item: T) => string): Page<T> {
  const first = items[0];
  const last = items.at(-1);
  return {
    page_info: {
      total_count: totalCount,
      count: items.length,
      start_cursor: first === undefined ? null : cursor(first),
      end_cursor: last === undefined ? null : cursor(last),
    },
    data: items,
  };
}

/** Of two adjacent pages together, neither of them empty. */
export const joinedPageInfo = (newer: PageInfo, older: PageInfo): PageInfo => ({
  total_count: newer.total_count,
  count: newer.count + older.count,
  start_cursor: newer.start_cursor,
  end_cursor: older.end_cursor,
});

/** The opaque cursor of a list's item: the unpadded base64url of its id. */
export const cursorOf = (id: string): string => Buffer.from(id, 'utf8').toString('base64url');

/** The id in a text that may be a cursor; undefined if the text is not a cursor. */
export function decodedCursor(text: string): string | undefined {
  const id = Buffer.from(text, 'base64url').toString('utf8');
  // encoded again for comparison, because the decoder skips characters that are not base64url
  return cursorOf(id) === text ? id : undefined;
}

/** The id in a cursor of a list of this kind. Throws Invalid, naming the field, if the text is not such a cursor. */
export function idOfCursor(kind: IdKind, field: 'after' | 'before', cursor: string | undefined): string | undefined {
  // an empty cursor counts as absent
  if (cursor === undefined || cursor === '') return undefined;
  const id = decodedCursor(cursor);
  if (!isId(kind, id)) throw new Invalid([{ field, message: `${field} is not a cursor of this list` }]);
  return id;
}
