import { describe, expect, it } from '@jest/globals';
import { type FindEvent, findEvent } from '#contracts';
import { eventPlace, readEventRecord } from '#events';
import { type LogReader, LogRecord } from '#messaging';
import { FakeMessages } from '#testing';
import { RoutingConfig } from '../../routing.config.js';
import { RecordedEvents } from './recorded-events.js';

const PLACE = { ms: 1, seq: 1 };

it('few events of an account are read from the log at a time', async () => {
  const messages = new FakeMessages();
  messages.replyTo(findEvent, () => ({ event: null, deletions: [] }));
  const end = Promise.withResolvers<Awaited<ReturnType<LogReader['bounds']>>>();
  const events = new RecordedEvents(messages as never, { bounds: () => end.promise } as unknown as LogReader, RoutingConfig.read({}));
  const reads = Array.from({ length: 5 }, () => events.look('u_1', 'dc_1', PLACE));
  await expect(reads.at(-1)).rejects.toThrow('at most 4 events');
  const ofOther = events.look('u_2', 'dc_1', PLACE);
  end.resolve(new Map());
  expect(await Promise.all([...reads.slice(0, -1), ofOther, events.look('u_1', 'dc_1', PLACE)])).toEqual(Array(6).fill(undefined));
});

describe('an event of the log', () => {
  const message = { key: Buffer.from('dc_1'), value: Buffer.from('1'), timestamp: '1000', offset: '7', attributes: 0, headers: {} };
  const record = new LogRecord('events', 1, message, 1000);
  /** The log: the timestamps of its records. */
  const inLog = (timestamps: number[]): RecordedEvents => {
    const messages = new FakeMessages();
    messages.replyTo(findEvent, () => ({ event: null, deletions: [] }));
    const end = timestamps.length;
    const reader = {
      bounds: async () => new Map([[1, { from: 0, to: end }]]),
      since: async (_: string, ms: number) => {
        const first = timestamps.findIndex((timestamp) => timestamp >= ms);
        return new Map([[1, { from: first < 0 ? end : first, to: end }]]);
      },
      read: async (...[, , , take]: Parameters<LogReader['read']>) => void take(1, [record]),
    } as unknown as LogReader;
    return new RecordedEvents(messages as never, reader, RoutingConfig.read({}));
  };
  const monotone = [400, 500, 600, 700, 800, 900, 1000, 1000, 1001, 1500];
  const stepsBack = [400, 500, 1500, 980, 1490, 985, 990, 1000, 1500];

  it.each([
    ['its time', monotone, 1000],
    ['the latest time before it, although the clock of its partition has stepped back', stepsBack, 1500],
  ])('has the id with %s, and without an emit id the one with which it was delivered', async (_, log, ms) => {
    const place = eventPlace({ clock: ms, offset: 7, partition: 1 });
    const expected = readEventRecord(new LogRecord('events', 1, message, ms));
    const events = inLog(log);
    expect([await events.find('u_1', 'dc_1', place), await events.look('u_1', 'dc_1', place), await events.at('u_1', place)]).toEqual(
      Array(3).fill(expected),
    );
  });

  it.each([
    ['an earlier time', monotone, 999],
    ['a time that no record before it has', monotone, 1001],
    ['a time in the future', monotone, Date.now() + 86_400_000],
    ['a time before the latest one, after a step back', stepsBack, 1490],
    ['a time after the latest one, after a step back', stepsBack, 1501],
  ])('has no other id: %s', async (_, log, ms) => {
    const place = eventPlace({ clock: ms, offset: 7, partition: 1 });
    const events = inLog(log);
    expect([await events.find('u_1', 'dc_1', place), await events.look('u_1', 'dc_1', place), await events.at('u_1', place)]).toEqual(
      Array(3).fill(undefined),
    );
  });
});

it.each<[string, boolean | undefined, (events: RecordedEvents) => Promise<unknown>]>([
  ['delivered again is requested with all deletions', undefined, (events) => events.find('u_1', 'dc_1', PLACE)],
  ['attempted again is requested with all deletions', undefined, (events) => events.isDeleted('u_1', 'dc_1', '', PLACE)],
  ['shown is requested as it is stored', true, (events) => events.look('u_1', 'dc_1', PLACE)],
])('an event that is %s', async (_, mayLag, use) => {
  const messages = new FakeMessages();
  messages.replyTo(findEvent, () => ({ event: null, deletions: [] }));
  const reader = { bounds: async () => new Map() } as unknown as LogReader;
  await use(new RecordedEvents(messages as never, reader, RoutingConfig.read({})));
  expect(messages.requests.map(({ payload }) => (payload as FindEvent).may_lag)).toEqual([mayLag]);
});
