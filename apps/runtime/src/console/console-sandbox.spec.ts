import { describe, expect, it } from '@jest/globals';
import type { Log } from '#observability';
import type { DeploymentRow } from '../deployments/deployment.entity.js';
import type { RunJob, RunOutcome, Sandbox } from '../sandbox/sandbox.js';
import { ConsoleSandbox } from './console-sandbox.js';

const job: RunJob = {
  ...{ runId: 'run-1', accountId: 'u_1', sourceId: 'dc_1', component: { hash: '', code: '' }, method: 'run' },
  ...{ props: {}, endpoint: null, db: {}, event: undefined },
};
const ok: RunOutcome = { status: 'ok', error: null, emits: [], logs: [], db: {}, wallMs: 1, cpuMs: 1, responded: false };
const line = (level: string, message: string) => ({ level, ts: 0, message });

/** The lines that a run with this outcome adds to the log. */
async function logged(
  outcome: Partial<RunOutcome>,
  { name = 'orders', method = 'run' }: { name?: string | null; method?: RunJob['method'] } = {},
) {
  const lines: unknown[] = [];
  const ended = { ...ok, ...outcome };
  const sandbox = new ConsoleSandbox(
    { run: async () => ended } as unknown as Sandbox,
    {
      find: async () => {
        if (name === null) throw new Error('the database is down');
        return { name_slug: name } as DeploymentRow;
      },
    },
    { info: (fields: object, message: string) => lines.push({ ...fields, msg: message }) } as unknown as Log,
  );
  expect(await sandbox.run({ ...job, method })).toBe(ended);
  return lines;
}

describe('the log of a sandbox that shows what components do', () => {
  it('contains the lines of the console with the name of the source', async () => {
    expect(await logged({ logs: [line('log', 'one'), line('warn', 'two')] })).toEqual([
      { source: 'orders', source_id: 'dc_1', console: 'log', message: 'one', msg: 'component.logged' },
      { source: 'orders', source_id: 'dc_1', console: 'warn', message: 'two', msg: 'component.logged' },
    ]);
  });

  it('contains the stack of the error that a component throws', async () => {
    const error = { name: 'TypeError', code: null, message: 'no', stack: 'TypeError: no\n    at component.js:3:1' };
    expect(await logged({ status: 'threw', error }, { method: 'activate' })).toEqual([
      { source: 'orders', source_id: 'dc_1', run_id: 'run-1', method: 'activate', stack: error.stack, msg: 'component.threw' },
    ]);
  });

  it('has the id of the source if its name cannot be read', async () => {
    expect(await logged({ logs: [line('log', 'one')] }, { name: null })).toMatchObject([{ source: 'dc_1' }]);
  });

  it('is silent about a run without lines, and about options of props', async () => {
    expect(await logged({})).toEqual([]);
    expect(await logged({ logs: [line('log', 'one')] }, { method: 'options' })).toEqual([]);
  });
});
