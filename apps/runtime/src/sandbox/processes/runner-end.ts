import { CLOSED, type RunError, type RunStatus } from '../sandbox.js';

/** Why a process ended, which is also the outcome of its runs. `retired`: it was replaced because of its age. */
export interface RunnerEnd {
  status: RunStatus | 'retired';
  code: string;
  message: string;
  /** The process had to end for the sake of others: its runs are repeated, whatever they did. */
  isForOthers?: boolean;
  /** Code that was running had to be stopped. In other cases, earlier runs may have used up what the process may have. */
  isOfRunningCode?: boolean;
}

export const retired: RunnerEnd = { status: 'retired', code: 'RETIRED', message: 'the process was replaced because of its age' };
export const closed: RunnerEnd = { status: 'killed', code: CLOSED, message: 'Sluice was stopped while the code ran' };
export const abandoned: RunnerEnd = { status: 'retired', code: 'ABANDONED', message: 'nobody waits for it any more' };
export const idle = (ms: number): RunnerEnd => ({
  status: 'timeout',
  code: 'TIMEOUT',
  message: `The code did nothing for ${ms} ms while it was loaded: move what it waits for into a hook or \`run\``,
});
export const shortOfMemory = (mb: number, why: string): RunnerEnd => ({
  status: 'memory',
  code: 'MEMORY',
  message: `Sluice was short of memory, and the code ${why} (${Math.round(mb)} MB)`,
  isForOthers: true,
});
export const blocked = (silenceCpuMs: number): RunnerEnd => ({
  status: 'killed',
  code: 'BLOCKED',
  message: `The code blocked the event loop (an endless loop?); it may compute for ${silenceCpuMs} ms without a pause`,
  isOfRunningCode: true,
});
export const usedCpu = (ms: number): RunnerEnd => ({
  status: 'killed',
  code: 'CPU',
  message: `The code used more than ${ms} ms of CPU`,
  isOfRunningCode: true,
});

/** Whether V8, Node or the C++ library has reported on standard error that the process may have no more memory. The signal differs between jails. */
export const ranOutOfMemory = (errors: string): boolean =>
  /<--- Last few GCs --->|out of memory|allocation fail|ERR_MEMORY_ALLOCATION_FAILED|std::bad_alloc/i.test(errors);

/** Why a process exited that nobody stopped. In the jail, the exit status of a process that V8 aborted is not special, so its error output decides. */
export function endByItself(errors: string, exit: string): RunnerEnd {
  if (ranOutOfMemory(errors))
    return {
      status: 'memory',
      code: 'MEMORY',
      message: 'The code needed more memory than it may have (SLUICE_MAX_RUN_MEMORY_MB, half of it for JavaScript objects)',
    };
  return { status: 'crashed', code: 'CRASHED', message: `The process that ran the code exited (${exit})` };
}

/** The outcome of a run whose process ended. */
export const statusOf = ({ status }: RunnerEnd): RunStatus => (status === 'retired' ? 'killed' : status);
export const errorOf = ({ code, message }: RunnerEnd): RunError => ({ name: 'SandboxError', code, message, stack: '' });
