import type { EmitterId } from '#contracts';
import {
  comparePlaces,
  coversStream,
  type DeletedRange,
  type EmittedEvent,
  type EventPlace,
  isInRange,
  KEPT_EVENTS,
  type Stream,
  WAITING_STREAM,
} from '#events';

/** A change that a record of the topic `events` requests. */
export type Operation = EmittedEvent | DeletedRange;

export interface SplitBatch {
  /** New events that can be appended without reading stored ones. */
  plain: EmittedEvent[];
  /** Operations to replay over stored events, by emitter, in the order of the log. */
  toReplay: Map<EmitterId, Operation[]>;
}

/** A stream of an emitter, as a key of maps. */
export const streamKey = (emitterId: EmitterId, stream: Stream): string => `${emitterId} ${stream}`;

/**
 * Separates new events that can be appended from operations that depend on stored events or on each other: those of emitters with a deletion or an event that
 * waited, and those of streams with a repeated emit, or with more events than are kept.
 *
 * @param repeating streams of which one of the events is already stored, by `streamKey`
 */
export function splitBatch(operations: Operation[], repeating: ReadonlySet<string> = new Set()): SplitBatch {
  const byEmitter = new Map<EmitterId, Operation[]>();
  for (const operation of operations) {
    const own = byEmitter.get(operation.emitterId);
    if (own) own.push(operation);
    else byEmitter.set(operation.emitterId, [operation]);
  }
  const split: SplitBatch = { plain: [], toReplay: new Map() };
  // in the order of the index: rows on one page cost PostgreSQL a sixth less
  for (const [emitterId, own] of [...byEmitter].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const events = independentEvents(own);
    const streams = events ? Map.groupBy(events, ({ stream }) => stream) : [];
    const dependent: Operation[] = events ? [] : own;
    for (const [stream, ofStream] of streams) {
      const isPlain = isAppended(ofStream) && !repeating.has(streamKey(emitterId, stream));
      (isPlain ? split.plain : dependent).push(...ofStream);
    }
    if (dependent.length > 0) split.toReplay.set(emitterId, dependent);
  }
  return split;
}

/** The operations of an emitter if they are events of which none concerns another stream. */
function independentEvents(operations: Operation[]): EmittedEvent[] | undefined {
  const events: EmittedEvent[] = [];
  for (const operation of operations) {
    if (operation.kind === 'delete' || operation.waited) return undefined;
    events.push(operation);
  }
  return events;
}

/** Whether all of these new events of a stream are kept. */
const isAppended = (events: EmittedEvent[]): boolean =>
  events.length === 1 || (events.length <= KEPT_EVENTS && new Set(events.map(({ emitId }) => emitId)).size === events.length);

/** A stored event. */
export interface KeptEvent {
  stream: Stream;
  place: EventPlace;
  emitId: string;
}

export interface Replayed {
  /** The new events to store. */
  added: EmittedEvent[];
  /** The stored events to delete. */
  removed: { stream: Stream; place: EventPlace }[];
  /** The emit ids of events that were deleted from `$in`, without those that came due. */
  withdrawn: string[];
  /** How many new events were already stored, according to their emit ids. */
  repeated: number;
}

interface Entry {
  place: EventPlace;
  emitId: string;
  /** Of a new one. */
  event?: EmittedEvent;
}

/**
 * Applies one emitter's operations, in the order of the log, to its stored events. This is the definition of the store; appending in bulk is a shortcut
 * that has the same result.
 *
 * @param kept exactly the newest 100 of each of the streams
 * @param within the streams to which they are applied: all to which they add events, or a part of these
 */
export function replay(kept: KeptEvent[], operations: Operation[], within: ReadonlySet<Stream>): Replayed {
  const streams = new Map<Stream, Entry[]>();
  const entriesOf = (stream: Stream): Entry[] => {
    let entries = streams.get(stream);
    if (!entries) streams.set(stream, (entries = []));
    return entries;
  };
  for (const { stream, place, emitId } of kept) entriesOf(stream).push({ place, emitId });
  for (const entries of streams.values()) entries.sort((a, b) => comparePlaces(a.place, b.place));

  const gone: { stream: Stream; entry: Entry }[] = [];
  const removeWhere = (stream: Stream, condition: (entry: Entry) => boolean): Entry[] => {
    const { removed = [], left = [] } = Object.groupBy(entriesOf(stream), (entry) => (condition(entry) ? 'removed' : 'left'));
    gone.push(...removed.map((entry) => ({ stream, entry })));
    streams.set(stream, left);
    return removed;
  };

  const withdrawn: string[] = [];
  let repeated = 0;
  for (const operation of operations) {
    if (operation.kind === 'delete') {
      const { stream: wanted } = operation;
      for (const stream of [...streams.keys()].filter((each) => wanted === null || coversStream(wanted, each))) {
        const deleted = removeWhere(stream, ({ place }) => isInRange(operation, stream, place));
        if (stream === WAITING_STREAM) withdrawn.push(...deleted.map(({ emitId }) => emitId));
      }
      continue;
    }
    const { stream, emitId, place, waited } = operation;
    if (waited && within.has(WAITING_STREAM)) removeWhere(WAITING_STREAM, (entry) => entry.emitId === emitId);
    if (!within.has(stream)) continue;
    const entries = entriesOf(stream);
    if (entries.some((entry) => entry.emitId === emitId)) {
      repeated += 1;
      continue;
    }
    insert(entries, { place, emitId, event: operation });
    const oldest = entries.length > KEPT_EVENTS ? entries.shift() : undefined;
    if (oldest) gone.push({ stream, entry: oldest });
  }
  return {
    added: [...streams.values()].flatMap((entries) => entries.flatMap(({ event }) => event ?? [])),
    removed: gone.filter(({ entry }) => !entry.event).map(({ stream, entry }) => ({ stream, place: entry.place })),
    withdrawn,
    repeated,
  };
}

/** Almost always at the end: places are out of order only if a producer spreads one emitter over several partitions. */
function insert(entries: Entry[], entry: Entry): void {
  let at = entries.length;
  while (at > 0 && comparePlaces((entries[at - 1] as Entry).place, entry.place) > 0) at -= 1;
  entries.splice(at, 0, entry);
}
