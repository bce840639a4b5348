import { expect, it } from '@jest/globals';
import { type CreateReplay, newId } from '#contracts';
import { ReplaysController } from './replays.controller.js';
import type { ReplayRow } from './replays.repository.js';

it('creates a replay once, however often its request is repeated and whatever has changed since', async () => {
  const rows: Pick<ReplayRow, 'id' | 'events'>[] = [];
  let [running, events, active] = [19, 5, true];
  const replays = {
    find: async (_: string, id: string) => rows.find((row) => row.id === id),
    add: async (row: ReplayRow) => void rows.push(row),
    countRunning: async () => running + rows.length,
  };
  const log = { count: async () => ({ events, to_id: '1-0' }) };
  const [directory, webhooks] = [{ requireOwned: async () => ({}) }, { find: async () => ({ active }) }];
  const controller = new ReplaysController(...([replays, log, directory, webhooks] as unknown as [never, never, never, never]));
  const command: CreateReplay = {
    ...{ id: newId('replay'), owner_id: newId('user'), emitter_id: newId('source'), listener_id: newId('webhook') },
    ...{ stream: '', from_id: '0-0', to_id: '1-0' },
  };
  expect(await controller.create(command)).toEqual({ events: 5 });
  [events, active] = [7, false];
  expect(await controller.create(command)).toEqual({ events: 5 });
  expect(rows).toHaveLength(1);
  active = true;
  expect(await controller.create({ ...command, dry_run: true })).toEqual({ events: 7 });
  await expect(controller.create({ ...command, id: newId('replay') })).rejects.toMatchObject({ code: 'too_many_requests' });
  running = 0;
  expect(await controller.create({ ...command, id: newId('replay') })).toEqual({ events: 7 });
});
