import { createHash } from 'node:crypto';
import { executeRun, type SourceId, type UserId, WORKFLOW_TRIGGERS_TOPIC, type WorkflowId } from '#contracts';
import {
  type Cause,
  ceTypeOf,
  type EmittedEvent,
  eventIdOf,
  eventRecord,
  type EventToProduce,
  isErrorEvent,
  originalEvent,
  spreadOver,
} from '#events';
import { type OutgoingRecord, type Publisher, recordOf, shares } from '#messaging';
import { errorReport, reportEmitId } from '../error-records.js';

/** The number of sources and workflows that an event may have passed through and still trigger another one. */
export const MAX_HOPS = 16;

/** How many events and runs one cause may become and still trigger sources and workflows: a tree as wide as it is deep would be 10 000^16. */
export const MAX_SPREAD = 10_000;

const CODE = 'LoopDetected';

type Path = Pick<EmittedEvent, 'hops' | 'cause'>;

/** Whether the event may trigger these sources and workflows. */
export const mayTrigger = (event: Path, triggered = 1): boolean => event.hops <= MAX_HOPS && !isTooWide(event, triggered);

/** Whether its cause would become too many runs. */
export const isTooWide = ({ cause }: Path, triggered: number): boolean => (cause?.spread ?? 1) * triggered > MAX_SPREAD;

/**
 * The report on the emitter's `$errors` about an event that triggers nothing because of its hops. Undefined for such a report: one loop would be reported
 * forever. A repeated report is the same emit.
 */
export function loopReport(event: EmittedEvent, ownerId: UserId, triggered = 1): EventToProduce | undefined {
  if (isErrorEvent(event, CODE)) return undefined;
  const { emitterId, emitId, place, stream, json, hops } = event;
  const ts = new Date(place.ms).toISOString();
  return errorReport({
    emitterId,
    code: CODE,
    message: isTooWide(event, triggered)
      ? `one cause has become more than ${MAX_SPREAD} events and runs; its events trigger no more sources and workflows`
      : `the event passed through ${hops} sources and workflows; it triggers no more of them`,
    ts,
    emitId: reportEmitId(CODE, place),
    originalEvent: originalEvent(json),
    context: { id: emitId, ts, event_id: eventIdOf(place), event_name: stream },
    ownerId,
    // the hops of the event, so that the report triggers nothing either
    hops,
    ...(isTooWide(event, triggered) ? { cause: spreadOver(event.cause, MAX_SPREAD + 1, emitId) } : {}),
  });
}

/** The id of the run that an event makes of a source: the same one also when a producer's retry put the emit into the log twice. */
export const runIdOf = ({ emitterId, stream, emitId }: EmittedEvent, sourceId: SourceId): string =>
  `event-${createHash('sha256').update(`${emitterId}\n${stream}\n${emitId}\n${sourceId}`).digest('hex').slice(0, 40)}`;

/** The cause of the runs of sources and workflows that an event triggers. */
const causeOf = (event: EmittedEvent, triggered: number): Cause => spreadOver(event.cause, triggered, event.emitId);

/**
 * The run of a source that listens.
 *
 * @param options.triggered how many sources and workflows listen
 * @param options.runId another id than that of the event's own run
 */
export function runRecord(
  event: EmittedEvent,
  ownerId: UserId,
  sourceId: SourceId,
  { triggered = 1, runId = runIdOf(event, sourceId) }: { triggered?: number; runId?: string } = {},
): OutgoingRecord {
  return recordOf(
    executeRun,
    {
      run_id: runId,
      owner_id: ownerId,
      source_id: sourceId,
      trigger: 'event',
      event: event.json.toString('utf8'),
      due_at_ms: event.place.ms,
      hops: event.hops,
      cause: causeOf(event, triggered),
    },
    ownerId,
  );
}

/** The event for a workflow that listens, with its producer's `ce_*` headers and, as a webhook gets them, ours. */
export function workflowRecord(event: EmittedEvent, workflowId: WorkflowId, triggered = 1): OutgoingRecord {
  const { value, headers }: EventToProduce = eventRecord({ ...event, cause: causeOf(event, triggered) });
  const { ce_sluicemade: _, ...ofEvent } = headers;
  const eventId = eventIdOf(event.place);
  const own = { ce_sluiceemitter: event.emitterId, ce_sluiceevent: eventId, ce_sluicestream: ceTypeOf(event.stream), ce_eventid: eventId };
  return { topic: WORKFLOW_TRIGGERS_TOPIC, key: workflowId, value, headers: { ...ofEvent, ...own } };
}

/**
 * The records that a batch of events causes, sent together and in order. Each event waits for all of them, which costs nothing because they are sent in
 * one request anyway.
 */
export class TriggerBatch {
  private readonly records: OutgoingRecord[] = [];
  private sending: Promise<void> | undefined;

  constructor(private readonly publisher: Publisher) {}

  add(record: OutgoingRecord): void {
    this.records.push(record);
  }

  /** Resolves when Kafka has stored all records. A call after a failure sends all of them again. */
  send(): Promise<void> {
    this.sending ??= Promise.all(shares(this.records).map((share) => this.publisher.send(share))).then(
      () => undefined,
      (error: Error) => {
        this.sending = undefined;
        throw error;
      },
    );
    return this.sending;
  }
}
