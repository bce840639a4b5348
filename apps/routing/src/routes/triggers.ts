import { executeRun, type SourceId, type UserId, WORKFLOW_TRIGGERS_TOPIC, type WorkflowId } from '#contracts';
import {
  type Cause,
  ceTypeOf,
  type EmittedEvent,
  errorReport,
  eventIdOf,
  eventRecord,
  type EventToProduce,
  isErrorEvent,
  originalEvent,
  runIdOf,
  spreadOver,
} from '#events';
import { type OutgoingRecord, recordOf, type Sender, sendOrSetAside, sizeOf, type Task } from '#messaging';
import { reportEmitId } from '../error-records.js';

/** The number of sources and workflows that an event may have passed through and still trigger another one. */
export const MAX_HOPS = 16;

/** How many events and runs one cause can have become and still trigger sources and workflows: without it, 16 hops of 10 000 listeners would be 10 000^16 runs. */
export const MAX_SPREAD = 10_000;

/**
 * How many runs one cause may have in a replica. The spread of an event does not count the other streams of the runs on its way: a source that listens to
 * its own events, logs and errors would run 3^16 times.
 */
export const MAX_RUNS = MAX_HOPS * MAX_SPREAD;

const CODE = 'LoopDetected';

type Path = Pick<EmittedEvent, 'hops' | 'cause'>;

/** Whether the event may trigger these sources and workflows. */
export const mayTrigger = (event: Path, triggered = 1): boolean => event.hops <= MAX_HOPS && !isTooWide(event, triggered);

/** Whether its cause could become too many runs. */
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
      ? `one cause may have become more than ${MAX_SPREAD} events and runs; its events trigger no more sources and workflows`
      : `the event passed through ${hops} sources and workflows; it triggers no more of them`,
    ts,
    emitId: reportEmitId(CODE, place),
    originalEvent: originalEvent(json),
    context: { event_id: eventIdOf(place), emit_id: emitId, event_name: stream },
    ownerId,
    // the hops of the event, so that the report triggers nothing either
    hops,
    ...(isTooWide(event, triggered) ? { cause: spreadOver(event.cause, MAX_SPREAD + 1, emitId) } : {}),
  });
}

/** The cause of the runs of sources and workflows that an event triggers. */
const causeOf = (event: EmittedEvent, triggered: number): Cause => spreadOver(event.cause, triggered, event.emitId);

/**
 * Makes the runs of the sources that listen to an event. Its text is most of each record and the same in all of them, so it is written once.
 *
 * @param triggered how many sources and workflows listen
 * @returns the run of a source. `runId`: another id than that of the event's own run
 */
export function runsOf(event: EmittedEvent, ownerId: UserId, triggered = 1): (sourceId: SourceId, runId?: string) => OutgoingRecord {
  const cause = causeOf(event, triggered);
  let text: string | undefined;
  return (sourceId, runId = runIdOf(event, sourceId)) => {
    text ??= JSON.stringify(event.json.toString('utf8'));
    const run = {
      ...{ run_id: runId, owner_id: ownerId, source_id: sourceId, trigger: 'event' as const },
      ...{ due_at_ms: event.place.ms, hops: event.hops, cause },
    };
    const record = recordOf(executeRun, run, ownerId);
    return { ...record, value: `${record.value.slice(0, -1)},"event":${text}}` };
  };
}

/** The event for a workflow that listens, with its producer's `ce_*` headers and those of Sluice, as a webhook gets them. */
export function workflowRecord(event: EmittedEvent, workflowId: WorkflowId, triggered = 1): OutgoingRecord {
  // the workflow passes the hops on as it receives them, so they include it
  const { value, headers }: EventToProduce = eventRecord({ ...event, hops: event.hops + 1, cause: causeOf(event, triggered) });
  const { ce_sluicemade: _, ...ofEvent } = headers;
  const eventId = eventIdOf(event.place);
  const own = { ce_sluiceemitter: event.emitterId, ce_sluiceevent: eventId, ce_sluicestream: ceTypeOf(event.stream) };
  // a producer may have an extension attribute of this name
  return { topic: WORKFLOW_TRIGGERS_TOPIC, key: workflowId, value, headers: { ce_eventid: eventId, ...ofEvent, ...own } };
}

/** The tasks whose records are sent together: a failure repeats all of them. */
const SENT_TOGETHER = 500;
/** The bytes of records that are made and sent at a time: the runs of a large event, with a copy of it for each source, do not fit into memory together. */
const SENT_BYTES = 2 * 1024 * 1024;

/** Records, which are made when they are sent if they are not an array; or what makes them then, and again if it throws. */
type RecordsToSend = Iterable<OutgoingRecord> | (() => Promise<OutgoingRecord[]>);

/**
 * Tasks that send records, in one lane and in their order. The first task of the lane sends the records of all tasks that wait behind it, too, which costs
 * nothing because they are sent in one request anyway.
 */
export class SendLane {
  private readonly waiting = new Map<Task, RecordsToSend>();

  /** onEmpty: called when no task is left. */
  constructor(
    private readonly sender: Sender,
    /** The lane of the tasks, and their tenant. */
    private readonly where: Pick<Task, 'lane' | 'tenant'>,
    private readonly onEmpty = () => {},
  ) {}

  /** Its `run` resolves when Kafka has stored the records, or their dead letters. If it throws, they are sent again with the next call. */
  task(records: RecordsToSend): Task {
    const task: Task = { ...this.where, run: () => this.send(task), drop: () => this.remove(task) };
    this.waiting.set(task, records);
    return task;
  }

  private async send(first: Task): Promise<void> {
    const records = this.waiting.get(first);
    // an earlier task has sent them
    if (!records) return;
    const sent = new Map([[first, records]]);
    for (const [task, others] of this.waiting) {
      if (sent.size === SENT_TOGETHER) break;
      // another process may send the others
      if (task.isOwn?.() ?? true) sent.set(task, others);
    }
    const made = await Promise.all([...sent.values()].map(async (each) => (typeof each === 'function' ? each() : each)));
    for (const portion of portions(made)) await sendOrSetAside(portion, this.sender);
    for (const task of sent.keys()) this.remove(task);
  }

  private remove(task: Task): void {
    this.waiting.delete(task);
    if (this.waiting.size === 0) this.onEmpty();
  }
}

function* portions(all: Iterable<Iterable<OutgoingRecord>>): Generator<OutgoingRecord[]> {
  let [portion, bytes]: [OutgoingRecord[], number] = [[], 0];
  for (const records of all) {
    for (const record of records) {
      portion.push(record);
      bytes += sizeOf(record);
      if (bytes < SENT_BYTES) continue;
      yield portion;
      [portion, bytes] = [[], 0];
    }
  }
  if (portion.length > 0) yield portion;
}
