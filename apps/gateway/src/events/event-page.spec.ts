import { cpuSeconds } from '#testing';
import { describe, expect, it } from '@jest/globals';
import { text } from 'node:stream/consumers';
import type { EventPage } from '#contracts';
import { fieldSelection } from '../http/fields.js';
import { eventPageBody, polledEvent, selectedSummary } from './event-page.js';

const EVENT = '{"n":1.0,"big":12345678901234567890,"metadata":{"a":",\\"metadata\\":{"}}';
const item = (n: number, event = EVENT) =>
  `{"id":"${n}-1","indexed_at_ms":${n},"event":${event},"metadata":{"emit_id":"e","summary":",\\"metadata\\":{\\"x\\":1}"}}`;
const page = (...items: number[]): EventPage => ({
  page_info: {
    total_count: 9,
    count: items.length,
    start_cursor: items.length > 0 ? `${items[0]}-1` : null,
    end_cursor: items.length > 0 ? `${items.at(-1)}-1` : null,
  },
  items: items.map((n) => item(n)),
});

async function* chunksOf(...pages: EventPage[]): AsyncGenerator<EventPage> {
  yield* pages;
}
const all = selectedSummary(null);
const bodyOf = async (...args: Parameters<typeof eventPageBody>): Promise<string> => {
  const body = await eventPageBody(...args);
  return typeof body === 'string' ? body : text(body);
};

describe('a page of events', () => {
  it('returns the JSON of each event unchanged, digit by digit', async () => {
    const one = page(5);
    expect(await bodyOf(chunksOf(one), all)).toBe(`{"page_info":${JSON.stringify(one.page_info)},"data":[${item(5)}]}`);
  });

  it('a page of several messages is a stream with the same content', async () => {
    const body = await eventPageBody(chunksOf(page(5, 4), page(3), page(2)), all);
    expect(typeof body).toBe('object');
    const streamed = JSON.parse(await text(body as never)) as object;
    expect(streamed).toEqual(JSON.parse(await bodyOf(chunksOf(page(5, 4, 3, 2)), all)));
  });

  it('reads no further message while the client does not read', async () => {
    let read = 0;
    async function* endless(): AsyncGenerator<EventPage> {
      for (;;) {
        read++;
        yield { ...page(5), items: [item(5, `"${'x'.repeat(1 << 20)}"`)] };
      }
    }
    const body = await eventPageBody(endless(), all);
    (body as NodeJS.ReadableStream).read();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(read).toBeLessThan(5);
  });

  it('contains only the fields of its events that the request selects', async () => {
    const { data } = JSON.parse(await bodyOf(chunksOf(page(5)), selectedSummary(fieldSelection('id,metadata', 'metadata')))) as {
      data: object[];
    };
    expect(data).toEqual([{ id: '5-1' }]);
    const selected = selectedSummary(fieldSelection('event,indexed_at_ms', null))(item(5));
    expect(selected).toBe(`{"indexed_at_ms":5,"event":${EVENT}}`);
  });

  it('is an empty list without events', async () => {
    expect(JSON.parse(await bodyOf(chunksOf(page()), all))).toMatchObject({ data: [] });
  });

  it('has another format for older clients, without page_info', async () => {
    const polled = polledEvent(null);
    expect(await bodyOf(chunksOf(page(5)), polled, { withInfo: false })).toBe(`{"data":[{"id":"5-1","ts":5,"k":"emit","e":${EVENT}}]}`);
    expect(JSON.parse(await bodyOf(chunksOf(page(5), page(4)), polled, { withInfo: false }))).toMatchObject({
      data: [{ ts: 5 }, { ts: 4 }],
    });
  });

  it('selects and converts events without parsing them', async () => {
    const bomb = item(5, `[${'[],'.repeat(300_000)}0]`);
    const converted = () =>
      Array.from({ length: 500 }, () => [selectedSummary(fieldSelection('event', null))(bomb).length, polledEvent(null)(bomb).length]);
    // parsing takes about 30 ms each
    expect(await cpuSeconds(converted)).toBeLessThan(3);
  });
});
