import { expect, it } from '@jest/globals';
import { type FindEvent, findEvent } from '#contracts';
import type { LogReader } from '#messaging';
import { FakeMessages } from '#testing';
import { RoutingConfig } from '../../routing.config.js';
import { RecordedEvents } from './recorded-events.js';

const PLACE = { ms: 1, seq: 1 };

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
