import type { FinishedRun, RunRequest } from '#contracts';
import type { RunError, RunOutcome, RunStatus } from '../sandbox/sandbox.js';

/** A run that has ended, as it is stored. */
export interface RunEntry extends Pick<FinishedRun, 'trigger' | 'method' | 'status' | 'duration_ms' | 'emitted'> {
  started_at: Date;
  /** JSON; null: it did not fail. */
  error: string | null;
}

const RESULTS: Record<RunStatus, FinishedRun['status']> = {
  ok: 'succeeded',
  threw: 'failed',
  timeout: 'timed_out',
  memory: 'killed',
  crashed: 'killed',
  killed: 'killed',
};

/** In characters: a page of a hundred runs must fit into a message. */
const LONGEST = { name: 100, message: 1000, stack: 4000 };

/** @param emitted how many events it emitted */
export function runEntry(
  { trigger, hook }: Pick<RunRequest, 'trigger' | 'hook'>,
  { status, error, wallMs }: Pick<RunOutcome, 'status' | 'error' | 'wallMs'>,
  emitted: number,
  now: number,
): RunEntry {
  const { name, message, stack } = LONGEST;
  const shown = error && {
    name: error.name.slice(0, name).toWellFormed(),
    message: error.message.slice(0, message).toWellFormed(),
    stack: error.stack.slice(0, stack).toWellFormed(),
  };
  return {
    trigger,
    method: hook?.method ?? 'run',
    status: RESULTS[status],
    started_at: new Date(now - wallMs),
    duration_ms: Math.ceil(wallMs),
    emitted,
    error: shown && JSON.stringify(shown),
  };
}

/** A run that was due but was not executed. */
export const skippedEntry = ({ trigger, hook }: Pick<RunRequest, 'trigger' | 'hook'>, reason: string, now: number): RunEntry => ({
  trigger,
  method: hook?.method ?? 'run',
  status: 'skipped',
  started_at: new Date(now),
  duration_ms: 0,
  emitted: 0,
  error: JSON.stringify({ name: 'Skipped', message: reason, stack: '' }),
});

/** The longest line of a stack that is read: the component writes it, and the time to match it grows with its square. */
const LONGEST_FRAME = 500;

/** The error of a component in one line, and where in its code it was thrown. */
export function errorLine({ name, message, stack }: RunError): { error: string; at?: string } {
  const frame = stack.split('\n', 50).find((line) => /^ +at /.test(line)) ?? '';
  const at = /([^\s(/]+:\d+:\d+)\)?$/.exec(frame.slice(-LONGEST_FRAME))?.[1];
  return { error: `${name}: ${message}`.slice(0, 300), ...(at && { at }) };
}
