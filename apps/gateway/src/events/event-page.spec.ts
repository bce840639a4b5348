import { describe, expect, it } from '@jest/globals';
import { eventPageJson, polledEvents } from './event-page.js';

const item = '{"id":"5-1","indexed_at_ms":5,"event":{"n":1.0,"big":12345678901234567890},"metadata":{"emit_id":"e"}}';
const page = { page_info: { total_count: 1, count: 1, start_cursor: '5-1', end_cursor: '5-1' }, items: [item] };

describe('a page of events', () => {
  it('returns the JSON of each event unchanged, digit by digit', () => {
    expect(eventPageJson(page, null)).toBe(`{"page_info":${JSON.stringify(page.page_info)},"data":[${item}]}`);
  });

  it('contains only the selected fields', () => {
    const { data } = JSON.parse(eventPageJson(page, { include: ['id', 'metadata'], exclude: ['metadata'] })) as { data: object[] };
    expect(data).toEqual([{ id: '5-1' }]);
  });

  it('is an empty list without events', () => {
    expect(JSON.parse(eventPageJson({ ...page, items: [] }, null))).toMatchObject({ data: [] });
  });

  it('has another format for older clients, without page_info', () => {
    expect(polledEvents({ ...page, items: ['{"id":"5-1","indexed_at_ms":5,"event":[1],"metadata":{}}'] })).toEqual({
      data: [{ id: '5-1', ts: 5, k: 'emit', e: [1] }],
    });
  });
});
