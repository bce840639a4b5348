import { expect, it } from '@jest/globals';
import { type FindEvent, findEvent } from '#contracts';
import type { LogReader } from '#messaging';
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
