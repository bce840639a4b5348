import { describe, expect, it } from '@jest/globals';
import { Unavailable } from '#contracts';
import type { EmitterDirectory } from '#emitters';
import { LogRecord } from '#messaging';
import type { StoreProgress } from '../append/store-progress.js';
import { EventPagesController } from './event-pages.controller.js';
import type { EventPagesRepository } from './event-pages.repository.js';
import { EventPagesService } from './event-pages.service.js';

const DEADLINE = 1_700_000_000_000;
const message = { offset: '0', timestamp: '0', key: null, value: null, headers: { deadline: Buffer.from(`${DEADLINE}`) }, attributes: 0 };
const record = new LogRecord('event-store.requests', 0, message, 0);
const of = { owner_id: 'u_1', emitter_id: 'dc_1' } as const;

describe('while the event store is behind', () => {
  const waitedUntil: number[] = [];
  const progress = {
    reachEnd: async (deadline: number) => {
      waitedUntil.push(deadline);
      throw new Unavailable('behind');
    },
  } as unknown as StoreProgress;
  const repository = {
    find: async () => undefined,
    deletions: async () => [],
    withdrawn: async () => [],
  } as unknown as EventPagesRepository;
  const directory = { requireOwned: async () => ({}) } as unknown as EmitterDirectory;
  const controller = new EventPagesController(new EventPagesService(directory, repository, progress), repository, progress);

  it.each<[string, () => Promise<unknown>]>([
    ['an event that is delivered again', () => controller.find({ ...of, event_id: '1-1' }, record)],
    ['the deletions that a replay leaves out', () => controller.deletions(of, record)],
    ['waiting emits that are due', () => controller.withdrawn({ emits: [{ emitter_id: 'dc_1', emit_id: 'a' }] }, record)],
  ])('nothing is returned about %s until the deadline of the caller', async (_, ask) => {
    waitedUntil.length = 0;
    await expect(ask()).rejects.toBeInstanceOf(Unavailable);
    expect(waitedUntil).toEqual([DEADLINE]);
  });

  it('an event is shown as it is stored', async () => {
    expect(await controller.find({ ...of, event_id: '1-1', may_lag: true }, record)).toEqual({ event: null, deletions: [] });
  });
});
