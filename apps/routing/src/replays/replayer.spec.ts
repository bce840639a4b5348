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

it('parks nothing while the account is full', async () => {
  const waiting = [{ id: 'rp_1', owner_id: 'u_1', status: 'running', listener_id: 'wh_1', emitter_id: 'dc_1', parked: [], offsets: {} }];
  const steps: string[] = [];
  const parked = Promise.withResolvers<void>();
  const replays = { claim: async () => waiting.pop(), save: async () => true, hasDue: async () => false };
  const event = { place: { ms: 1, seq: 4096 }, emitterId: 'dc_1', stream: '', emitId: 'e', json: Buffer.from('1') };
  const log = { next: async () => ({ events: [event], offsets: {}, last: true }) };
  const store = {
    parkAgain: async () => {
      steps.push('parked');
      parked.resolve();
    },
  };
  const isFull = (id: string) => id === 'u_1' && steps.push('full') < 3;
  const replayer = new Replayer(
    replays as never,
    log as never,
    store as never,
    {} as never,
    { isFull } as never,
    createLog('test', 'silent'),
  );
  replayer.onApplicationBootstrap();
  await parked.promise;
  expect(steps).toEqual(['full', 'full', 'full', 'parked']);
  await replayer.beforeApplicationShutdown();
});
