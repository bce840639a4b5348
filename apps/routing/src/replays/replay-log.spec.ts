import { describe, expect, it, jest } from '@jest/globals';
import type { EventDeletion, ListDeletions } from '#contracts';
import { eventIdOf, type EventPlace } from '#events';
import { type LogReader, LogRecord, type Messages } from '#messaging';
import { RoutingConfig } from '../routing.config.js';
import { PartDeletions, ReplayLog, type ReplayedPart } from './replay-log.js';

const PART: ReplayedPart = { owner_id: 'u_1', emitter_id: 'dc_1', stream: '', from_id: '0-0', to_id: '9000000000000-0', offsets: {} };

const NONE = new PartDeletions(async () => []);

/** A record of one fetch, all of whose records are slices of one buffer. */
const recordOf = (offset: number, { key, source, value }: { key: string | null; source?: string; value: Buffer }) =>
  new LogRecord(
    'events',
    0,
    {
      ...{ offset: `${offset}`, timestamp: '1', attributes: 0, value },
      key: key === null ? null : Buffer.from(key),
      headers: source === undefined ? {} : { ce_source: source },
    },
    1,
  );

/** The deletions behind which later ones were requested. */
let asked: (string | undefined)[];

function replaying(records: LogRecord[], deletions: EventDeletion[] = []) {
  const bounds = async () => new Map([[0, { from: 0, to: records.length }]]);
  const from = async () => new Map([[0, { from: 0, to: records.length }]]);
  const read: LogReader['read'] = async (_reader, _topic, ranges, take) =>
    void (await take(
      0,
      records.filter(({ offset }) => offset >= ranges.get(0)!.from),
    ));
  asked = [];
  const request = async (_: unknown, { after_id }: ListDeletions) => {
    asked.push(after_id);
    return deletions.slice(deletions.findIndex(({ at_id }) => at_id === after_id) + 1);
  };
  return new ReplayLog({ request } as unknown as Messages, { bounds, since: from, read } as unknown as LogReader, RoutingConfig.read({}));
}

describe('a replay', () => {
  it('includes the records without a key whose ce_source is the emitter', async () => {
    const value = Buffer.from('1');
    const records = [
      { key: 'dc_1', value },
      { key: null, source: 'dc_1', value },
      { key: 'dc_2', source: 'dc_1', value },
      { key: null, value },
    ];
    const log = replaying(records.map((record, offset) => recordOf(offset, record)));
    expect(await log.count(PART)).toMatchObject({ events: 2 });
  });

  it('ends with the last event that was counted, and at the given end if there is none', async () => {
    const value = Buffer.from('1');
    const records = ['dc_1', 'dc_1', 'dc_2'].map((key, offset) => recordOf(offset, { key, value }));
    const { to_id } = await replaying(records).count(PART);
    expect((await replaying(records).next({ ...PART, to_id }, NONE, 500)).events).toHaveLength(2);
    const later = [...records, recordOf(3, { key: 'dc_1', value })];
    expect((await replaying(later).next({ ...PART, to_id }, NONE, 500)).events).toHaveLength(2);
    expect(await replaying([]).count(PART)).toEqual({ events: 0, to_id: PART.to_id });
  });

  it('knows the deletions of events that were read, and looks only for later ones', async () => {
    const deletions: EventDeletion[] = [];
    const log = replaying(
      [0, 1, 2].map((offset) => recordOf(offset, { key: 'dc_1', value: Buffer.from('1') })),
      deletions,
    );
    const known = log.deletionsOf(PART);
    const { events } = await log.next(PART, known, 500);
    const remaining = async () => {
      await known.refresh();
      return events.filter((event) => !known.include(event));
    };
    expect(await remaining()).toEqual(events);
    const deleteAt = (place: EventPlace, at_id: string) =>
      deletions.push({ stream: null, start_id: eventIdOf(place), end_id: eventIdOf(place), at_id });
    deleteAt(events[1]!.place, '8000000000000-0');
    expect(await remaining()).toEqual([events[0], events[2]]);
    deleteAt(events[0]!.place, '8000000000000-1');
    expect(await remaining()).toEqual([events[2]]);
    expect(asked).toEqual([undefined, undefined, undefined, '8000000000000-0']);
    for (let n = 2; n < 110; n++) {
      deleteAt({ ms: n, seq: 0 }, `8000000000000-${n}`);
      expect(await remaining()).toEqual([events[2]]);
    }
    // many replies are replaced by one
    expect(asked.filter((id) => id === undefined)).toHaveLength(4);
  });

  it('reads 8 MiB at once at most, and does not keep what was fetched with it in memory', async () => {
    const fetched = Buffer.alloc(16 * 1024 * 1024, '1');
    const value = (offset: number) => fetched.subarray(offset * 1_000_000, (offset + 1) * 1_000_000);
    const records = Array.from({ length: 12 }, (_, offset) => recordOf(offset, { key: 'dc_1', value: value(offset) }));
    const log = replaying(records);
    const first = await log.next(PART, NONE, 500);
    expect(first).toMatchObject({ offsets: { 0: 9 }, last: false });
    expect(first.events).toHaveLength(9);
    expect(first.events.map(({ json }) => json.buffer.byteLength)).toEqual(first.events.map(() => 1_000_000));
    const second = await log.next({ ...PART, offsets: first.offsets }, NONE, 500);
    expect(second).toMatchObject({ offsets: { 0: 12 }, last: true });
    expect(second.events).toHaveLength(3);
    expect(await log.count(PART)).toMatchObject({ events: 12 });
  });

  it('delivers the events found within 10 seconds, and continues behind them', async () => {
    const records = ['dc_2', 'dc_1', 'dc_2', 'dc_1'].map((key, offset) => recordOf(offset, { key, value: Buffer.from('1') }));
    const now = jest.spyOn(performance, 'now');
    try {
      // the clock is read once for the start, and once for each record
      [0, 0, 0, 10_001].forEach((ms) => now.mockReturnValueOnce(ms));
      now.mockReturnValue(10_002);
      const log = replaying(records);
      const first = await log.next(PART, NONE, 500);
      expect(first).toMatchObject({ offsets: { 0: 2 }, last: false });
      expect(first.events).toHaveLength(1);
      now.mockReturnValue(0);
      expect(await log.next({ ...PART, offsets: first.offsets }, NONE, 500)).toMatchObject({ offsets: { 0: 4 }, last: true });
    } finally {
      now.mockRestore();
    }
  });

  it('gives events the ids that they have live, also when it continues far behind the record that is ahead of the others', async () => {
    // the first leader of the partition is a minute ahead of the second one
    const timestamps = [100_000, ...Array.from({ length: 999 }, (_, n) => 40_000 + n)];
    const since = async () => new Map([[0, { from: 0, to: timestamps.length }]]);
    const read: LogReader['read'] = async (_reader, _topic, ranges, take) => {
      let { from, clock = 0 } = ranges.get(0)!;
      const records = timestamps.slice(from).map((timestamp) => {
        clock = Math.max(clock, timestamp);
        const message = {
          ...{ offset: `${from++}`, timestamp: `${timestamp}`, attributes: 0, headers: {} },
          ...{ key: Buffer.from('dc_1'), value: Buffer.from('1') },
        };
        return new LogRecord('events', 0, message, clock);
      });
      await take(0, records);
    };
    const messages = { request: async () => [] } as unknown as Messages;
    const log = new ReplayLog(messages, { bounds: since, since, read } as unknown as LogReader, RoutingConfig.read({}));
    const first = await log.next(PART, NONE, 500);
    const second = await log.next({ ...PART, offsets: first.offsets, clocks: first.clocks }, NONE, 500);
    expect([first, second].flatMap(({ events }) => events).map(({ place }) => place.ms)).toEqual(timestamps.map(() => 100_000));
  });
});
