import { expect, it } from '@jest/globals';
import { cursorOf, idOfCursor, type LargePage, type LargePageRequest, pageOf, type UserId } from '#contracts';
import type { AccountPace } from '#fairness';
import { LargePages } from './large-pages.js';

const OWNER: UserId = 'u_1';
/** Newest first. */
const IDS = Array.from({ length: 9 }, (_, n) => `dc_${9 - n}`);

/** A pace that records the turns and the units of accounts. */
function paceOf(onTurn = () => {}) {
  const turns: UserId[] = [];
  const spent: [UserId, number][] = [];
  const delayRequest = async (account: UserId) => {
    turns.push(account);
    onTurn();
  };
  const spend = (account: UserId, units: number) => void spent.push([account, units]);
  return { pace: { delayRequest, spend } as unknown as AccountPace, turns, spent };
}

/** A service that returns at most `most` items at a time, and what it was sent. An earlier version counts the collection for every part. */
function serviceWith(most: number, { isEarlier = false, total = IDS.length } = {}) {
  const windows: LargePageRequest[] = [];
  const ask = async (window: LargePageRequest): Promise<LargePage<{ id: string }>> => {
    windows.push(window);
    const { limit, may_cut, without_total } = window;
    const [after, before] = (['after', 'before'] as const).map((field) => idOfCursor('source', field, window[field]));
    const within = IDS.filter((id) => (after === undefined || id < after) && (before === undefined || id > before));
    const count = may_cut ? Math.min(limit, most) : limit;
    const ids = before !== undefined && after === undefined ? within.slice(-count) : within.slice(0, count);
    const page = pageOf(
      ids.map((id) => ({ id })),
      without_total && !isEarlier ? 0 : total,
      ({ id }) => cursorOf(id),
    );
    return { ...page, cut: ids.length < Math.min(limit, within.length) };
  };
  return { windows, ask };
}

it.each([
  [{ limit: 9 }],
  [{ limit: 5 }],
  [{ limit: 100 }],
  [{ limit: 5, after: cursorOf('dc_8') }],
  [{ limit: 5, before: cursorOf('dc_2') }],
  [{ limit: 4, after: '', before: cursorOf('dc_2') }],
  [{ limit: 100, after: cursorOf('dc_8'), before: cursorOf('dc_2') }],
  [{ limit: 5, after: cursorOf('dc_1') }],
])('the parts of the page %j are those of the whole page, and each further one takes a turn of its account', async (window) => {
  const { pace, turns } = paceOf();
  const pages = new LargePages(pace);
  const [whole, parts] = [serviceWith(100), serviceWith(2)];
  const page = await pages.read(OWNER, window, parts.ask);
  expect(page).toEqual(await pages.read(OWNER, window, whole.ask));
  expect(page).not.toHaveProperty('cut');
  expect(parts.windows).toHaveLength(Math.max(1, Math.ceil(page.data.length / 2)));
  expect(whole.windows).toHaveLength(1);
  expect(turns).toEqual(Array(parts.windows.length - 1).fill(OWNER));
});

it.each([[{ limit: 9 }], [{ limit: 5, before: cursorOf('dc_2') }]])(
  'the service counts the collection once for the page %j',
  async (window) => {
    const pages = new LargePages(paceOf().pace);
    const { ask, windows } = serviceWith(2);
    const page = await pages.read(OWNER, window, ask);
    expect(page.page_info.total_count).toBe(9);
    expect(windows.map(({ without_total }) => without_total)).toEqual([undefined, ...windows.slice(1).map(() => true)]);
    expect(await pages.read(OWNER, window, serviceWith(2, { isEarlier: true }).ask)).toEqual(page);
  },
);

it('the count of a collection costs its account a unit per 5000 rows, once for each page', async () => {
  const { pace, spent } = paceOf();
  await new LargePages(pace).read(OWNER, { limit: 9 }, serviceWith(2, { total: 1_000_000 }).ask);
  expect(spent).toEqual([[OWNER, 200]]);
});

it('a page ends where further items were deleted meanwhile', async () => {
  const { ask } = serviceWith(2);
  const pages = new LargePages(paceOf(() => void (IDS.length = 2)).pace);
  expect((await pages.read(OWNER, { limit: 5 }, ask)).page_info).toMatchObject({ count: 2, end_cursor: cursorOf('dc_8') });
});
