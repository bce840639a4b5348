import { EVENTS_TOPIC, type FinishedRun, runFinished, type RunRequest, type SourceId, type UserId } from '#contracts';
import { type OutgoingRecord, recordOf, sizeOf } from '#messaging';
import { endedAttempt } from '../retries/next-attempt.js';
import type { EndedAttempt } from '../retries/retried-runs.repository.js';
import type { ComponentDescription, Emit, RunError, RunOutcome, RunStatus } from '../sandbox/sandbox.js';
import type { DedupeState } from '../source-state/dedupe.js';
import { judgedEmits, REFUSALS } from '../source-state/judged-emits.js';
import type { NewWaitingEmit } from '../waiting/waiting-emits.repository.js';
import { plainError } from '../run-events/error-reports.js';
import {
  type DueRun,
  emitIdOf,
  emitRecord,
  errorRecord,
  logRecord,
  originalOf,
  passedOn,
  waitingRecords,
} from '../run-events/run-events.js';

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

/** Those of a run that changes nothing and is not listed. */
export const NO_EFFECTS: RunEffects = {
  db: {},
  dedupe: null,
  waiting: [],
  records: [],
  usage: null,
  entry: null,
  attempt: null,
  final: false,
};

/** An emit whose `delivery_ts` is this close or in the past is emitted at once. */
const NOW_MS = 100;
/** Per kind and run. */
const MOST_PROBLEMS = 10;

/** The records that are prepared at once: to prepare megabytes would block the main thread, and smaller effects need no pause. */
const SLICE_BYTES = 64 * 1024;

/** The effects of a run that has ended. It pauses after each slice of large ones, so that its caller can let other work have its turn. */
export function* runEffects(
  run: DueRun,
  { sourceId, ownerId, version }: { sourceId: SourceId; ownerId: UserId; version: number },
  { dedupe: strategy, retries }: Pick<ComponentDescription, 'dedupe' | 'retries'>,
  outcome: RunOutcome,
  before: DedupeState,
  { counted, schedule }: { counted: boolean; schedule: readonly number[] },
): Generator<void, RunEffects> {
  const now = Date.now();
  const { emits, state, refused } = judgedEmits(outcome.emits, strategy, before, now);
  const errors = [
    ...(outcome.error ? [outcome.error] : []),
    ...(outcome.refused ?? []),
    ...REFUSALS.flatMap((code) =>
      summed(
        code,
        refused.filter((each) => each.code === code).map(({ reason }) => reason),
      ),
    ),
  ];
  const isWaiting = ({ deliveryTs = 0 }: Emit) => deliveryTs > now + NOW_MS;
  // per kind: the lines that a source logs must not end a chain of its events
  const passed = passedOn(run, emits.length);
  const withLogs = passedOn(run, outcome.logs.length);
  const withErrors = passedOn(run, errors.length);
  const numbered = emits.map((emit, number) => ({ emit, number }));
  const idOf = ({ emit, number }: (typeof numbered)[number]) => emitIdOf(run, number, emit);
  const emittedNow = numbered.filter(({ emit }) => !isWaiting(emit));
  const waits = yield* inSlices(
    numbered.filter(({ emit }) => isWaiting(emit)),
    (each) => waitingRecords(sourceId, each.emit, idOf(each), passed),
    ({ shown }) => sizeOf(shown),
  );
  const original = errors.length > 0 ? originalOf(run) : undefined;
  const events = [
    ...(yield* inSlices(emittedNow, (each) => emitRecord(sourceId, each.emit, idOf(each), passed), sizeOf)),
    ...waits.map(({ shown }) => shown),
    ...(yield* inSlices(outcome.logs, (line) => logRecord(sourceId, line, withLogs), sizeOf)),
    ...(yield* inSlices(errors, (error) => errorRecord(run, error, { version, passed: withErrors, original }), sizeOf)),
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

/** The results of `make` for each item. @param size the bytes of a result */
function* inSlices<Item, Made>(items: Item[], make: (item: Item) => Made, size: (made: Made) => number): Generator<void, Made[]> {
  const all: Made[] = [];
  let bytes = 0;
  for (const item of items) {
    if (bytes > SLICE_BYTES) {
      bytes = 0;
      yield;
    }
    const made = make(item);
    bytes += size(made);
    all.push(made);
  }
  return all;
}

/** The outcome that is stored instead if the database rejects the effects of a run: nothing may be dropped silently, or retried forever. */
export const notKept = (outcome: RunOutcome): RunOutcome => ({
  ...outcome,
  status: 'threw',
  refused: [],
  emits: [],
  logs: [],
  db: {},
  error: plainError('NotKept', 'the events and data of the run could not be stored'),
});

/** The outcome of a run whose code does not exist. */
export const withoutCode: RunOutcome = {
  ...{ status: 'threw', emits: [], logs: [], db: {}, wallMs: 0, cpuMs: 0, mainMs: 0, responded: false },
  error: plainError('CodeNotFound', "the code of the source's component is not stored; update the source with its component"),
};

/** One error per distinct problem, because each error contains the event, and a run may have a thousand problems. */
function summed(code: string, problems: string[]): ReturnType<typeof plainError>[] {
  const times = new Map<string, number>();
  for (const problem of problems) times.set(problem, (times.get(problem) ?? 0) + 1);
  const reported = [...times].slice(0, MOST_PROBLEMS);
  const left = problems.length - reported.reduce((sum, [, count]) => sum + count, 0);
  const messages = reported.map(([problem, count]) => (count === 1 ? problem : `${problem} (${count} times)`));
  return [...messages, ...(left === 0 ? [] : [`${left} more emits were refused`])].map((message) => plainError(code, message));
}

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

/** The longest name of an error in a line of the log. */
const LONGEST_NAME = 100;

/** The name of the error of a component, and where in its code it was thrown: its message may contain what users keep secret. */
export function errorLine({ name, stack }: Pick<RunError, 'name' | 'stack'>): { error: string; at?: string } {
  const frame = stack.split('\n', 50).find((line) => /^ +at /.test(line)) ?? '';
  const at = /([^\s(/]+:\d+:\d+)\)?$/.exec(frame.slice(-LONGEST_FRAME))?.[1];
  return { error: name.slice(0, LONGEST_NAME), ...(at && { at }) };
}
