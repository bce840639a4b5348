import { expect, it } from '@jest/globals';
import { NotFound } from '#contracts';
import { createLog } from '#observability';
import { Replayer } from './replayer.js';
import type { ReplayRow } from './replays.repository.js';

it('cancels a replay whose emitter was deleted', async () => {
  const waiting = [{ id: 'rp_1', status: 'running', listener_id: 'wh_1', emitter_id: 'dc_1', parked: [], offsets: {} }];
  const saved = Promise.withResolvers<{ status: string; release: boolean }>();
  const replays = {
    claim: async () => waiting.pop(),
    save: async ({ status }: ReplayRow, { release = false } = {}) => {
      saved.resolve({ status, release });
      return true;
    },
  };
  const log = { next: () => Promise.reject(new NotFound('source', 'dc_1')) };
  const replayer = new Replayer(replays as never, log as never, {} as never, {} as never, {} as never, createLog('test', 'silent'));
  replayer.onApplicationBootstrap();
  expect(await saved.promise).toEqual({ status: 'cancelled', release: true });
  await replayer.beforeApplicationShutdown();
});
