import type { RunStatus } from '../sandbox.js';

/** Why a process ended, and what the runs say that were in it. `retired`: nobody's fault, its time was up. */
export interface RunnerEnd {
  status: RunStatus | 'retired';
  code: string;
  message: string;
}

export const retired: RunnerEnd = { status: 'retired', code: 'RETIRED', message: 'the process was replaced because of its age' };
export const closed: RunnerEnd = { status: 'killed', code: 'CLOSED', message: 'The sandbox was closed' };
export const abandoned: RunnerEnd = { status: 'retired', code: 'ABANDONED', message: 'nobody waits for it any more' };
export const idle = (ms: number): RunnerEnd => ({
  status: 'timeout',
  code: 'TIMEOUT',
  message: `The code did nothing for ${ms} ms while it was loaded: what it waits for belongs into a hook or into run`,
});
export const blocked: RunnerEnd = { status: 'killed', code: 'BLOCKED', message: 'The code blocked the event loop (an endless loop?)' };
