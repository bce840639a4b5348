import { expect, it } from '@jest/globals';
import type { Run } from '@sluice/client';
import { type Column, listText } from '../session/output.js';
import type { Session } from '../session/session.js';
import { runs } from './runs.js';

const run = (fields: Partial<Run>): Run => ({
  ...{ id: '3Mo9', trigger: 'timer', method: 'run', status: 'succeeded', started_at: 1_769_860_800, duration_ms: 7, emitted: 2 },
  ...{ error: null, ...fields },
});

/** An account with the source `orders`, which has these runs. */
function terminal(data: Run[]) {
  const [printed, notes, requests]: [string[], string[], unknown[]] = [[], [], []];
  const session = {
    format: 'table',
    list: (items: Run[], columns: Column<Run>[]) => printed.push(listText(items, columns, 'table')),
    note: (text: string) => notes.push(text),
    sluice: {
      each: async function* () {
        yield { id: 'dc_1', name_slug: 'orders' };
      },
      listRuns: async (request: unknown) => (requests.push(request), { data }),
    },
  };
  return { session: session as unknown as Session, printed, notes, requests };
}

it('lists the last runs of a source, with the hook that ran and one line of each error', async () => {
  const error = { name: 'Error', message: `no paper\n${'x'.repeat(200)}`, stack: '' };
  const { session, printed, requests } = terminal([
    run({ trigger: 'hook', method: 'activate', status: 'failed', emitted: 0, error }),
    run({}),
  ]);
  await runs(session, 'orders', { number: '2' });
  expect(requests).toEqual([{ path: { id: 'dc_1' }, query: { limit: 2 } }]);
  expect(printed[0]!.split('\n').slice(0, -1)).toEqual([
    'ID    STARTED               TRIGGER   STATUS     EMITTED  MS  ERROR',
    `3Mo9  2026-01-31T12:00:00Z  activate  failed     0        7   no paper·${'x'.repeat(91)}`,
    '3Mo9  2026-01-31T12:00:00Z  timer     succeeded  2        7',
  ]);
});

it('explains an empty list, and refuses a number beyond the limit', async () => {
  const { session, notes } = terminal([]);
  await runs(session, 'orders', {});
  expect(notes).toEqual(['no runs yet; sluice run orders runs it now']);
  await expect(runs(session, 'orders', { number: '101' })).rejects.toMatchObject({ code: 2 });
});
