import { Injectable } from '@nestjs/common';
import { joinedPageInfo, type LargePage, type LargePageRequest, type Page, type PageRequest, type UserId } from '#contracts';
import { AccountPace } from '#fairness';
import { QueuePerKey } from '#limits';

/** Rows of a collection that cost a unit: PostgreSQL counts about as many in a millisecond. */
const COUNTED_PER_UNIT = 5000;

/** Pages of lists with large items. A service returns them in parts, and handles requests of other accounts between two parts. */
@Injectable()
export class LargePages {
  /** Only the first parts of an account's pages are read at the same time. */
  private readonly furtherParts = new QueuePerKey<UserId>(() => 1, Infinity);

  constructor(private readonly pace: AccountPace) {}

  /** @param ask returns a part of the page */
  async read<T>(
    ownerId: UserId,
    { limit, after, before }: PageRequest,
    ask: (window: LargePageRequest) => Promise<LargePage<T>>,
  ): Promise<Page<T>> {
    // an empty cursor counts as absent
    const isTowardsNewer = Boolean(before) && !after;
    const { cut, ...first } = await ask({ limit, after, before, may_cut: true });
    const { total_count } = first.page_info;
    this.pace.spend(ownerId, total_count / COUNTED_PER_UNIT);
    let page: Page<T> = first;
    for (let isCut = cut; isCut;) {
      // the parts before it have cost the account something
      await this.pace.delayRequest(ownerId, 0);
      const { start_cursor, end_cursor } = page.page_info;
      const cursors = isTowardsNewer ? { before: start_cursor ?? '' } : { before, after: end_cursor ?? '' };
      const rest = { limit: limit - page.data.length, ...cursors, may_cut: true, without_total: true };
      const part = await this.furtherParts.run(ownerId, 'too many lists of this account are being read', () => ask(rest));
      if (part.data.length === 0) return page;
      page = isTowardsNewer ? joined(part, page) : joined(page, part);
      page.page_info.total_count = total_count;
      isCut = part.cut;
    }
    return page;
  }
}

/** Joins two adjacent pages, neither of them empty. */
const joined = <T>(newer: Page<T>, older: Page<T>): Page<T> => ({
  page_info: joinedPageInfo(newer.page_info, older.page_info),
  data: [...newer.data, ...older.data],
});
