import { eventNameProblem, EVENTS_TOPIC, type EventToProduce, runFinished, type SourceId, type UserId } from '#contracts';
import { factRecord, type OutgoingRecord } from '#messaging';
import type { ComponentDescription, RunOutcome } from '../sandbox/sandbox.js';
import { dedupe, type DedupeState } from './dedupe.js';
import { type DueRun, emitRecord, errorRecord, logRecord, waitingRecords } from './run-events.js';

/** An emit that waits for its `delivery_ts`. */
export interface WaitingEmit {
  emit_id: string;
  /** Milliseconds. */
  due_at_ms: number;
  record: EventToProduce;
}

/** All effects of a run: written together or not at all. */
export interface RunEffects {
  /** JSON text by changed key; null: gone. */
  db: Record<string, string | null>;
  /** null without a dedupe strategy. */
  dedupe: DedupeState | null;
  waiting: WaitingEmit[];
  records: OutgoingRecord[];
  /** What the quotas count; null where it isn't counted. */
  usage: { account_id: UserId; compute_ms: number } | null;
  /** The source is deleted: forget what it kept. */
  final: boolean;
}

/** `delivery_ts` this close, or past, is now. */
const NOW_MS = 100;
const YEAR_MS = 366 * 86_400_000;

/** What is to be written of a run that has ended. */
export function runEffects(
  run: DueRun,
  { sourceId, ownerId, version }: { sourceId: SourceId; ownerId: UserId; version: number },
  { dedupe: strategy }: Pick<ComponentDescription, 'dedupe'>,
  outcome: RunOutcome,
  before: DedupeState,
  { counted, now = Date.now() }: { counted: boolean; now?: number },
): RunEffects {
  const named = outcome.emits.filter((emit) => nameProblem(emit) === null);
  const { emits, state, refused } = dedupe(named, strategy, before);
  const hops = (run.hops ?? 0) + 1;
  const isLate = ({ deliveryTs = 0 }: { deliveryTs?: number }) => deliveryTs > now + YEAR_MS;
  const errors = [
    ...(outcome.error ? [outcome.error] : []),
    ...outcome.emits.flatMap((emit) => nameProblem(emit) ?? []).map((problem) => plainError('BadStreamName', `$emit: ${problem}`)),
    ...refused.map(({ reason }) => plainError('DedupeError', reason)),
    ...emits.filter(isLate).map(() => plainError('DeliveryTooLate', 'delivery_ts must be at most one year ahead')),
  ];
  const isWaiting = ({ deliveryTs = 0 }: { deliveryTs?: number }) => deliveryTs > now + NOW_MS && deliveryTs <= now + YEAR_MS;
  const waits = emits.filter(isWaiting).map((emit) => waitingRecords(sourceId, emit, hops));
  const events = [
    ...emits.filter((emit) => !isWaiting(emit) && !isLate(emit)).map((emit) => emitRecord(sourceId, emit, hops)),
    ...waits.map(({ shown }) => shown),
    ...outcome.logs.map((line) => logRecord(sourceId, line)),
    ...errors.map((error) => errorRecord(run, error, deploymentIdOf(sourceId, version))),
  ];
  const compute_ms = Math.ceil(outcome.wallMs);
  const finished = { run_id: run.run_id, owner_id: ownerId, source_id: sourceId, status: outcome.status, compute_ms, finished_at_ms: now };
  return {
    db: outcome.db,
    dedupe: strategy === null ? null : state,
    waiting: waits.map(({ waiting }) => waiting),
    records: [...events.map((event) => ({ topic: EVENTS_TOPIC, ...event })), factRecord(runFinished, finished, ownerId)],
    usage: counted ? { account_id: ownerId, compute_ms } : null,
    final: run.hook?.final === true,
  };
}

export const deploymentIdOf = (sourceId: SourceId, version: number): string => `d_${sourceId.slice('dc_'.length)}${version}`;

/** What is written instead, when the database refuses the effects: nothing may be cut silently, nor run for ever. */
export function refusedEffects(run: DueRun, effects: RunEffects, deploymentId: string): RunEffects {
  const error = plainError('NotKept', 'what the run has emitted and kept could not be stored');
  const facts = effects.records.filter(({ topic }) => topic !== EVENTS_TOPIC);
  const told = { topic: EVENTS_TOPIC, ...errorRecord(run, error, deploymentId) };
  return { ...effects, db: {}, dedupe: null, waiting: [], records: [told, ...facts] };
}

/** Streams of ours but `$errors` and `$logs` are not a component's to emit on. */
const nameProblem = ({ name }: { name?: string }): string | null => (name === undefined ? null : eventNameProblem(name));

export const plainError = (code: string, message: string) => ({ name: code, code, message, stack: `${code}: ${message}` });
