import { EVENTS_TOPIC, type FinishedRun, runFinished, type RunRequest, type SourceId, type UserId } from '#contracts';
import { emittedStreamProblem } from '#events';
import { type OutgoingRecord, recordOf } from '#messaging';
import { endedAttempt } from '../retries/next-attempt.js';
import type { EndedAttempt } from '../retries/retried-runs.repository.js';
import type { ComponentDescription, RunError, RunOutcome, RunStatus } from '../sandbox/sandbox.js';
import { dedupe, type DedupeState } from '../source-state/dedupe.js';
import type { NewWaitingEmit } from '../waiting/waiting-emits.repository.js';
import { deploymentIdOf, type DueRun, emitRecord, errorRecord, logRecord, passedOn, waitingRecords } from './run-events.js';

/** All effects of a run, which are stored together or not at all. */
export interface RunEffects {
  /** JSON text by changed key; null: deleted. */
  db: Record<string, string | null>;
  /** null if the component has no dedupe strategy. */
  dedupe: DedupeState | null;
  waiting: NewWaitingEmit[];
  records: OutgoingRecord[];
  /** The usage that quotas count; null: it is not counted. */
  usage: { account_id: UserId; compute_ms: number } | null;
  /** For the list of the source's runs; null: it is not listed. */
  entry: RunEntry | null;
  /** null: nothing is stored about its attempts. */
  attempt: EndedAttempt | null;
  /** The source is deleted: delete its state. */
  final: boolean;
}

/** An emit whose `delivery_ts` is this close or in the past is emitted at once. */
const NOW_MS = 100;
const YEAR_MS = 366 * 86_400_000;
/** Per kind and run. */
const MOST_PROBLEMS = 10;

/** The effects of a run that has ended. */
export function runEffects(
  run: DueRun,
  { sourceId, ownerId, version }: { sourceId: SourceId; ownerId: UserId; version: number },
  { dedupe: strategy, retries }: Pick<ComponentDescription, 'dedupe' | 'retries'>,
  outcome: RunOutcome,
  before: DedupeState,
  { counted, schedule, now = Date.now() }: { counted: boolean; schedule: readonly number[]; now?: number },
): RunEffects {
  const nameProblems = outcome.emits.map(nameProblem);
  const named = outcome.emits.filter((_, index) => nameProblems[index] === null);
  const { emits, state, refused } = dedupe(named, strategy, before);
  const isLate = ({ deliveryTs = 0 }: { deliveryTs?: number }) => deliveryTs > now + YEAR_MS;
  const errors = [
    ...(outcome.error ? [outcome.error] : []),
    ...summed(
      'BadStreamName',
      nameProblems.flatMap((problem) => (problem === null ? [] : `$emit: ${problem}`)),
    ),
    ...summed(
      'DedupeError',
      refused.map(({ reason }) => reason),
    ),
    ...summed(
      'DeliveryTooLate',
      emits.filter(isLate).map(() => 'delivery_ts must be at most one year ahead'),
    ),
  ];
  const isWaiting = ({ deliveryTs = 0 }: { deliveryTs?: number }) => deliveryTs > now + NOW_MS && deliveryTs <= now + YEAR_MS;
  const passed = passedOn(run, emits.length + outcome.logs.length + errors.length);
  const emittedNow = emits.filter((emit) => !isWaiting(emit) && !isLate(emit));
  const waits = emits.filter(isWaiting).map((emit) => waitingRecords(sourceId, emit, passed));
  const events = [
    ...emittedNow.map((emit) => emitRecord(sourceId, emit, passed)),
    ...waits.map(({ shown }) => shown),
    ...outcome.logs.map((line) => logRecord(sourceId, line, passed)),
    ...errors.map((error) => errorRecord(run, error, deploymentIdOf(sourceId, version), passed)),
  ];
  const compute_ms = Math.ceil(outcome.wallMs);
  const finished = { run_id: run.run_id, owner_id: ownerId, source_id: sourceId, status: outcome.status, compute_ms, finished_at_ms: now };
  return {
    db: outcome.db,
    dedupe: strategy === null ? null : state,
    waiting: waits.map(({ waiting }) => waiting),
    records: [...events.map((event) => ({ topic: EVENTS_TOPIC, ...event })), recordOf(runFinished, finished, ownerId)],
    usage: counted ? { account_id: ownerId, compute_ms } : null,
    entry: runEntry(run, outcome, emittedNow.length + waits.length, now),
    attempt: endedAttempt(run, { retries }, outcome.status, { schedule, now, random: Math.random() }),
    final: run.hook?.final === true,
  };
}

/** The event on `$errors` of a run that was skipped because of the account's quota. */
export function overQuota(run: DueRun): OutgoingRecord {
  const error = plainError('QuotaExceeded', "the account's daily quota is used up; the source will run again from 00:00 UTC");
  return { topic: EVENTS_TOPIC, ...errorRecord(run, error, deploymentIdOf(run.source_id)) };
}

/** The effects stored instead if the database rejects those of a run: nothing may be dropped silently, or retried forever. */
export const notKept = (outcome: RunOutcome): RunOutcome => ({
  ...outcome,
  status: 'threw',
  emits: [],
  logs: [],
  db: {},
  error: plainError('NotKept', 'the events and data of the run could not be stored'),
});

/** One error per distinct problem, because each error contains the event, and a run may have a thousand problems. */
function summed(code: string, problems: string[]): ReturnType<typeof plainError>[] {
  const times = new Map<string, number>();
  for (const problem of problems) times.set(problem, (times.get(problem) ?? 0) + 1);
  const reported = [...times].slice(0, MOST_PROBLEMS);
  const left = problems.length - reported.reduce((sum, [, count]) => sum + count, 0);
  const messages = reported.map(([problem, count]) => (count === 1 ? problem : `${problem} (${count} times)`));
  return [...messages, ...(left === 0 ? [] : [`${left} more emits were refused`])].map((message) => plainError(code, message));
}

/** Of the reserved `$` streams, a component may emit only on `$errors` and `$logs`. */
const nameProblem = ({ name }: { name?: string }): string | null => (name === undefined ? null : emittedStreamProblem(name));

const plainError = (code: string, message: string) => ({ name: code, code, message, stack: `${code}: ${message}` });

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
