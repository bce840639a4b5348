import { beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { type EventPage, listEvents, type PageRequest } from '#contracts';
import { AccountPace } from '#fairness';
import { Messages } from '#messaging';
import { FakeMessages } from '#testing';
import { EventsService } from './events.service.js';

const ME = 'u_000000000000000001';
const SOURCE = 'dc_000000000000000001';
const STORED = 10;

/** A store of ten events, newest first, of which at most `most` fit into one reply. */
function store(most: number) {
  const events = Array.from({ length: STORED }, (_, n) => STORED - n);
  return ({ limit, after, before }: PageRequest): EventPage => {
    const within = events.filter((n) => (after === undefined || n < Number(after)) && (before === undefined || n > Number(before)));
    const towardsNewer = before !== undefined && after === undefined;
    const wanted = towardsNewer ? within.slice(-limit) : within.slice(0, limit);
    const shown = towardsNewer ? wanted.slice(-most) : wanted.slice(0, most);
    const cursor = (n: number | undefined) => (n === undefined ? null : String(n));
    return {
      page_info: { total_count: STORED, count: shown.length, start_cursor: cursor(shown[0]), end_cursor: cursor(shown.at(-1)) },
      items: shown.map(String),
      cut: shown.length < wanted.length,
    };
  };
}

describe('the events of an emitter', () => {
  let messages: FakeMessages;
  let service: EventsService;
  /** How many requests have been sent each time the account took its turn. */
  let turns: number[];

  beforeEach(async () => {
    messages = new FakeMessages();
    turns = [];
    const pace = { delayRequest: async () => void turns.push(messages.requests.length) };
    const module = await Test.createTestingModule({
      providers: [EventsService, { provide: Messages, useValue: messages }, { provide: AccountPace, useValue: pace }],
    }).compile();
    service = module.get(EventsService);
  });

  describe.each([1, 3, 100])('when %i of them fit into one reply of the store', (most) => {
    it.each<[string, PageRequest, number[]]>([
      ['the newest', { limit: 4 }, [10, 9, 8, 7]],
      ['all', { limit: 100 }, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]],
      ['those after a cursor', { limit: 4, after: '7' }, [6, 5, 4, 3]],
      ['the last after a cursor', { limit: 4, after: '3' }, [2, 1]],
      ['those directly before a cursor', { limit: 4, before: '5' }, [9, 8, 7, 6]],
      ['those between two cursors', { limit: 4, after: '9', before: '6' }, [8, 7]],
      ['none after the oldest', { limit: 4, after: '1' }, []],
      ['the newest, where cursors are empty', { limit: 2, after: '', before: '' }, [10, 9]],
    ])('a page shows %s', async (_, window, shown) => {
      messages.replyTo(listEvents, store(most));
      const { items, page_info } = await service.page(ME, SOURCE, window);
      expect(items.map(Number)).toEqual(shown);
      expect(page_info).toEqual({
        ...{ total_count: STORED, count: shown.length },
        ...{ start_cursor: shown.length > 0 ? String(shown[0]) : null, end_cursor: shown.length > 0 ? String(shown.at(-1)) : null },
      });
    });
  });

  it('takes a turn of the account before each further part of a page', async () => {
    messages.replyTo(listEvents, store(4));
    await service.page(ME, SOURCE, { limit: 10 });
    expect(messages.requests).toHaveLength(3);
    expect(turns).toEqual([1, 2]);
  });

  it('ends a page when the store has no more events', async () => {
    const nothing = { total_count: 0, count: 0, start_cursor: null, end_cursor: null };
    messages.replyTo(listEvents, () => ({ page_info: nothing, items: [], cut: true }));
    expect((await service.page(ME, SOURCE, { limit: 4 })).items).toEqual([]);
    expect(messages.requests).toHaveLength(2);
  });

  it.each([
    [undefined, ''],
    ['default', ''],
    ['$errors', '$errors'],
    ['mine', 'mine'],
  ])('are read from the stream that event_name %j selects', async (event_name, stream) => {
    messages.replyTo(listEvents, store(100));
    await service.page(ME, SOURCE, { limit: 1, event_name, expand: 'event' });
    expect(messages.requests).toMatchObject([{ key: SOURCE, payload: { owner_id: ME, emitter_id: SOURCE, stream, expand: true } }]);
  });
});
