import { expect, it } from '@jest/globals';
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

it('an event without an id has the same emit id as when it was delivered, although the clock of its partition was ahead', async () => {
  const messages = new FakeMessages();
  messages.replyTo(findEvent, () => ({ event: null, deletions: [] }));
  const message = { key: Buffer.from('dc_1'), value: Buffer.from('1'), timestamp: '1000', offset: '7', attributes: 0, headers: {} };
  const [read, alone] = [1500, 1000].map((clock) => new LogRecord('events', 1, message, clock));
  const reader = {
    bounds: async () => new Map([[1, { from: 0, to: 8 }]]),
    read: async (...[, , , take]: Parameters<LogReader['read']>) => void take(1, [alone!]),
  } as unknown as LogReader;
  const found = await new RecordedEvents(messages as never, reader, RoutingConfig.read({})).find('u_1', 'dc_1', eventPlace(read!));
  expect(found).toEqual(readEventRecord(read!));
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
