import { hash } from 'node:crypto';
import { ksuid, type RunRequest, type SourceId } from '#contracts';
import {
  errorContext,
  errorEventJson,
  ERRORS_STREAM,
  eventRecord,
  type EventToProduce,
  LOGS_STREAM,
  originalEvent,
  streamOf,
  WAITING_STREAM,
  type Cause,
  spreadOver,
} from '#events';
import { rawHttpBody } from '../sandbox/wire/http-body.js';
import type { Emit, LogLine, RunError } from '../sandbox/sandbox.js';
import type { NewWaitingEmit } from '../waiting/waiting-emits.repository.js';

/** A run with its event. */
export type DueRun = RunRequest & { event: string };

/**
 * The id of an emit of a run. If the run is repeated because its effects were lost with the database, an emit that is the same again has the same id:
 * it is not stored twice, and receivers recognise it.
 * @param number of the emit within the run
 */
export function emitIdOf({ run_id, due_at_ms }: Pick<DueRun, 'run_id' | 'due_at_ms'>, number: number, emit: Emit): string {
  const { event, name, id, deliveryTs } = emit;
  return ksuid(due_at_ms, hash('md5', `${JSON.stringify([run_id, number, name, id, deliveryTs])}${event}`, 'buffer'));
}

/** The record of an event that a source emitted. */
export const emitRecord = (sourceId: SourceId, emit: Emit, emitId: string, passed: Passed): EventToProduce =>
  eventRecord({
    emitterId: sourceId,
    stream: streamOf(emit.name),
    emitId,
    json: Buffer.from(emit.event),
    summary: emit.summary,
    itemId: emit.id,
    itemTs: emit.ts,
    time: new Date().toISOString(),
    ...passed,
  });

/**
 * A waiting emit: the record that shows it on `$in`, and the one to produce when it is due. Both have the same emit id, as has the waiting row: by it,
 * the store removes the event from `$in`, and knows whether it was deleted there.
 */
export function waitingRecords(
  sourceId: SourceId,
  emit: Emit,
  emitId: string,
  passed: Passed,
): { shown: EventToProduce; waiting: NewWaitingEmit } {
  const dueAt = emit.deliveryTs ?? 0;
  const event = {
    emitterId: sourceId,
    emitId,
    json: Buffer.from(emit.event),
    summary: emit.summary,
    itemId: emit.id,
    itemTs: emit.ts,
    ...passed,
    dueAt,
  };
  return {
    shown: eventRecord({ ...event, stream: WAITING_STREAM, dueStream: streamOf(emit.name), time: new Date().toISOString() }),
    waiting: {
      emit_id: emitId,
      due_at_ms: dueAt,
      record: eventRecord({ ...event, stream: streamOf(emit.name), time: new Date(dueAt).toISOString() }),
    },
  };
}

/** The record of a logged line. */
export const logRecord = (sourceId: SourceId, { level, ts, message, args }: LogLine, passed: Passed): EventToProduce =>
  ownRecord(sourceId, LOGS_STREAM, passed, Buffer.from(withArgs(JSON.stringify({ level, ts: new Date(ts).toISOString(), message }), args)));

/** The arguments are JSON text from the component. They were validated, and parsing those of a whole run would delay every other account. */
const withArgs = (line: string, args: string | undefined): string => (args === undefined ? line : `${line.slice(0, -1)},"args":${args}}`);

/** Of the record of an error. */
interface OfError {
  /** Of the source's deployment; absent: the run has not begun. */
  version?: number;
  passed?: Passed;
  /** The event of the run: see {@link originalOf}. */
  original?: unknown;
  emitId?: string;
  /** No run was created, so the list of runs does not contain it. */
  isRefused?: boolean;
}

/** The record of an error of a run, as `$errors` shows it. */
export function errorRecord(
  run: DueRun,
  error: RunError,
  { version, passed = passedOn(run, 1), original = originalOf(run), emitId, isRefused = false }: OfError,
): EventToProduce {
  const runId = isRefused ? undefined : run.run_id;
  const ts = new Date().toISOString();
  const json = errorEventJson({
    ...{ code: error.code ?? error.name, message: error.message, stack: error.stack, ts, originalEvent: original },
    context: errorContext({ id: ksuid(), runId, ts, emitterId: run.source_id, sourceType: run.trigger, ownerId: run.owner_id, version }),
  });
  return ownRecord(run.source_id, ERRORS_STREAM, passed, json, emitId);
}

/** The event of a run, as its errors contain it. A large body of a request is not parsed here: it would delay every other account. */
export function originalOf({ event, http_body }: DueRun): unknown {
  if (http_body === undefined) return originalEvent(event);
  const { bodyRaw, bodyBase64 } = rawHttpBody(Buffer.from(http_body, 'base64'));
  return originalEvent(JSON.stringify({ ...(JSON.parse(event) as object), bodyRaw, bodyBase64, body: { $truncated: true } }));
}

/** The headers that each event of a run inherits. */
interface Passed {
  hops: number;
  cause: Cause;
}

/**
 * The headers that each event of a run inherits, including errors and logs: otherwise a source that listens to its own errors would never stop.
 * @param events how many events of the same kind (emits, logs, errors) the run has
 */
export const passedOn = ({ hops = 0, cause, run_id }: Pick<DueRun, 'hops' | 'cause' | 'run_id'>, events: number): Passed => ({
  hops: hops + 1,
  cause: spreadOver(cause, events, run_id),
});

const ownRecord = (sourceId: SourceId, stream: string, passed: Passed, json: Buffer, emitId: string = ksuid()): EventToProduce =>
  eventRecord({
    emitterId: sourceId,
    stream,
    emitId,
    json,
    time: new Date().toISOString(),
    ...passed,
  });
