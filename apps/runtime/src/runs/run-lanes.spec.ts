import { expect, it } from '@jest/globals';
import type { RunRequest, SourceId } from '#contracts';
import type { Consumers } from '#messaging';
import { RunLanes } from './run-lanes.js';

const run = (source_id: SourceId, more: Partial<RunRequest> = {}): RunRequest => ({
  ...{ run_id: 'r', owner_id: 'u_1', source_id, trigger: 'manual', due_at_ms: 1 },
  ...more,
});

it('puts the runs of a source into as many lanes as may be in progress, in turn, and its hooks into the first one, before other runs', () => {
  const lanes = new RunLanes({} as Consumers);
  const laneOf = (request: RunRequest, atATime: number) => lanes.laneOf(request, atATime).lane;
  expect(Array.from({ length: 6 }, () => laneOf(run('dc_a'), 3))).toEqual(['dc_a#1', 'dc_a#2', 'dc_a', 'dc_a#1', 'dc_a#2', 'dc_a']);
  expect([laneOf(run('dc_b'), 3), laneOf(run('dc_c'), 1), laneOf(run('dc_c'), 1)]).toEqual(['dc_b#1', 'dc_c', 'dc_c']);
  const hook = { method: 'activate', version: 1, deployment: {} } as unknown as RunRequest['hook'];
  expect(lanes.laneOf(run('dc_a', { hook }), 3)).toEqual({ lane: 'dc_a', group: 'u_1', isUrgent: true });
  // a change allows fewer
  expect(Array.from({ length: 3 }, () => laneOf(run('dc_a'), 2))).toEqual(['dc_a#1', 'dc_a', 'dc_a#1']);
  expect(lanes.laneOf(run('dc_a'), 1).group).toBe('u_1');
});
