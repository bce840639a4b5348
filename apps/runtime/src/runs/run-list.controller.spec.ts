import { expect, it } from '@jest/globals';
import type { ListRuns } from '#contracts';
import { RunListController } from './run-list.controller.js';
import type { RunsPage } from './runs.repository.js';

const row = (position: number, run_id: string) => ({
  ...{ source_id: 'dc_1', position, run_id, trigger: 'manual', method: 'run', status: 'succeeded' },
  ...{ started_at: new Date(0), duration_ms: 1, emitted: 0, error: null },
});

const windows: RunsPage[] = [];
/** The results of runs that have ended; null: it has left the list. */
const results: Record<string, string | null> = { good: 'succeeded', old: null, bad: 'failed', left: 'skipped' };
const controller = new RunListController(
  {
    findEnded: async (_: string, ids: string[]) =>
      ids.flatMap((id) => (id in results ? [{ id, listed: results[id] === null ? null : { status: results[id] } }] : [])),
    page: async (_: string, window: RunsPage) => {
      windows.push(window);
      return { rows: [row(2616, 'r2'), row(2600, 'r1')], total: 2 };
    },
  } as never,
  {} as never,
  { waiting: async (ids: string[]) => new Set(ids.filter((id) => id === 'queued')), hasOthers: async () => true } as never,
  { requireOwned: async () => ({}) } as never,
  {} as never,
);
const list = (window: Partial<ListRuns>) => controller.list({ owner_id: 'u_1', source_id: 'dc_1', limit: 10, ...window });

it('returns cursors that do not reveal how many runs there are, and accepts them', async () => {
  const { start_cursor, end_cursor } = (await list({})).page_info;
  expect([start_cursor, end_cursor].map((cursor) => Buffer.from(cursor!, 'base64url').toString())).toEqual(['run_r2', 'run_r1']);
  await list({ after: start_cursor!, before: end_cursor! });
  expect(windows.at(-1)).toEqual({ limit: 10, after: 'r2', before: 'r1' });
});

it.each(['x', 'cnVuXw', 'cnVuX3Iy=', Buffer.from('run_a b').toString('base64url'), Buffer.from('dc_1').toString('base64url')])(
  'refuses %j, which is not a cursor',
  async (after) => {
    await expect(list({ after })).rejects.toThrow('after is not a cursor of this list');
  },
);

it('returns how runs have ended, and which ones wait', async () => {
  const run_ids = ['good', 'old', 'bad', 'left', 'queued', 'unknown'];
  expect(await controller.outcomes({ owner_id: 'u_1', source_id: 'dc_1', run_ids })).toEqual({
    succeeded: ['good', 'old'],
    failed: ['bad', 'left'],
    queued: ['queued'],
    others_wait: true,
  });
});
