import { describe, expect, it } from '@jest/globals';
import type { Log } from '#observability';
import type { RunOutcome } from '../sandbox/sandbox.js';
import type { RuntimeConfig } from '../runtime.config.js';
import { ComponentConsole } from './component-console.js';

const ok: RunOutcome = { status: 'ok', error: null, emits: [], logs: [], db: {}, wallMs: 1, cpuMs: 1, mainMs: 1, responded: false };
const lines = [
  { level: 'log', ts: 0, message: 'one' },
  { level: 'warn', ts: 0, message: 'two' },
];

/** The lines that a run with this outcome adds to the log. */
function logged(outcome: Partial<RunOutcome>, logsComponents = true) {
  const log: unknown[] = [];
  const console = new ComponentConsole(
    { logsComponents } as RuntimeConfig,
    {
      info: (fields: object, message: string) => log.push({ ...fields, msg: message }),
    } as unknown as Log,
  );
  console.show('orders', { sourceId: 'dc_1', runId: 'run-1', method: 'activate' }, { ...ok, ...outcome });
  return log;
}

describe('the console of components', () => {
  it('shows each line with the name of the source', () => {
    expect(logged({ logs: lines })).toEqual([
      { source: 'orders', source_id: 'dc_1', console: 'log', message: 'one', msg: 'component.logged' },
      { source: 'orders', source_id: 'dc_1', console: 'warn', message: 'two', msg: 'component.logged' },
    ]);
  });

  it('shows the stack of the error that a component throws', () => {
    const error = { name: 'TypeError', code: null, message: 'no', stack: 'TypeError: no\n    at component.js:3:1' };
    expect(logged({ status: 'threw', error })).toEqual([
      { source: 'orders', source_id: 'dc_1', run_id: 'run-1', method: 'activate', stack: error.stack, msg: 'component.threw' },
    ]);
  });

  it('shows nothing of a run without lines, or if the configuration does not ask for it', () => {
    expect(logged({})).toEqual([]);
    expect(logged({ logs: lines }, false)).toEqual([]);
  });
});
