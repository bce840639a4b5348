import { expect, it } from '@jest/globals';
import type { EventListener, EventRun } from '#contracts';
import { withRuns } from './event-listeners.controller.js';

const attempt = (error: string | null) => ({ ts: 1, status_code: null, duration_ms: 1, error, response_body: null });
const run = (last_id: string | null, status: EventRun['status']): EventRun => ({
  ...{ source_id: 'dc_L', last_id, status },
  attempts: status === 'succeeded' || status === 'failed' ? [attempt(status === 'failed' ? 'Error: no' : null)] : [],
});
const supposed = (status: EventListener['status']): EventListener => ({
  ...{ listener_id: 'dc_L', kind: 'source', delivery_id: null, run_id: null, status, attempts: [] },
});

it.each<[string, EventListener[], EventRun[], Partial<EventListener>[]]>([
  ['has no run', [supposed('pending')], [], [supposed('pending')]],
  [
    'ran and was deactivated',
    [supposed('skipped')],
    [run('r', 'succeeded')],
    [{ run_id: 'r', status: 'succeeded', attempts: [attempt(null)] }],
  ],
  ['ran and was unsubscribed', [], [run('r', 'succeeded')], [{ run_id: 'r', status: 'succeeded', attempts: [attempt(null)] }]],
  ['never subscribed, but got a replay', [], [run('rpl', 'succeeded')], [{ run_id: 'rpl', status: 'succeeded' }]],
  [
    'failed and succeeded in a replay',
    [supposed('pending')],
    [run('r', 'failed'), run('rpl', 'succeeded')],
    [{ run_id: 'rpl', status: 'succeeded', attempts: [attempt('Error: no'), attempt(null)] }],
  ],
  ['was inactive and succeeded in a replay', [supposed('skipped')], [run('rpl', 'succeeded')], [{ run_id: 'rpl', status: 'succeeded' }]],
  ['succeeded, and its replay was skipped', [], [run('r', 'succeeded'), run('rpl', 'skipped')], [{ run_id: 'r', status: 'succeeded' }]],
  ['failed, and its replay waits', [], [run('r', 'failed'), run(null, 'pending')], [{ run_id: 'r', status: 'pending' }]],
  ['was skipped', [supposed('pending')], [run('r', 'skipped')], [{ run_id: 'r', status: 'skipped', attempts: [] }]],
  ['ran so long ago that the run is not listed', [], [run('r', null)], [{ run_id: 'r', status: 'succeeded', attempts: [] }]],
  ['timed out', [], [run('r', 'timed_out')], [{ status: 'failed' }]],
])('an event at a source that %s', (_, listeners, runs, expected) => {
  const listed = withRuns(listeners, runs);
  expect(listed).toMatchObject(expected);
  expect(listed).toHaveLength(1);
});
