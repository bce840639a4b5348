import { Injectable } from '@nestjs/common';
import type { EmitterId } from '#contracts';
import { type EmittedEvent, eventPlace, type EventPlace, logPlaceOf, type Stream, WAITING_STREAM } from '#events';
import { JointWrites, LOCK_NOT_AVAILABLE, type Transaction, UNIQUE_VIOLATION } from '#database';
import { AHEAD_MS, Fenced, Lanes, type Position } from '#messaging';
import { AppendRepository, type StreamKey, type WithdrawnEmit } from './append.repository.js';
import { type Operation, replay, splitBatch, streamKey } from './replay.js';
import { StreamCounter, TrimCounter } from './stream-counters.js';

/** The result of a batch. */
export interface Appended {
  stored: number;
  /** Emits that were already stored. */
  repeated: number;
  /** Emitters that had too many streams, of which the oldest were removed; absent: none. */
  crowded?: EmitterId[];
}

/** The records of a partition, and its position before and after them. */
interface PartitionBatch {
  partition: number;
  operations: Operation[];
  before: Position;
  after: Position;
}

/** A batch that only has new events to append. */
interface PlainBatch extends PartitionBatch {
  plain: EmittedEvent[];
}

/** With fewer events, or fewer bytes of JSON, a transaction costs more than its events. */
const SMALL = { events: 250, bytes: 256 * 1024 };
/** The most partitions that share a transaction. */
const PARTITIONS_TOGETHER = 16;
/** The most transactions of single partitions at a time. Readers need connections, too. */
const ALONE_AT_A_TIME = 4;

/** How many batches of a partition are looked through for repeats after the last one that had some: a producer that repeats emits will do it again. */
const WATCHED_BATCHES = 50;

/** A part of the streams of an emitter, with all of its operations. */
interface ReplayedPart {
  emitterId: EmitterId;
  operations: Operation[];
  streams: Set<Stream>;
}

/**
 * Stores a batch of a partition in one transaction with the partition's position. Events are appended without reading stored ones; where that is not
 * enough, the emitter's operations are replayed over its stored events. Small batches of several partitions share a transaction, unless one of them is
 * locked: a frozen process that owned a partition must not stop the others.
 */
@Injectable()
export class AppendService {
  /** The number of streams whose stored events are in memory at a time, for each partition. */
  protected readonly replayedTogether: number = 200;
  private readonly together = new JointWrites<PlainBatch, Appended>((batches) => this.appendTogether(batches), PARTITIONS_TOGETHER);
  private readonly alone = new Lanes({ concurrency: ALONE_AT_A_TIME });
  /** Partitions that may be locked: they do not share a transaction until a batch is stored. */
  private readonly locked = new Set<number>();
  /** Partitions with repeats, and how many more batches are looked through. They do not share a transaction: a repeat makes it fail for all. */
  private readonly watched = new Map<number, number>();

  constructor(
    private readonly events: AppendRepository,
    private readonly trims: TrimCounter,
    private readonly streams: StreamCounter,
  ) {}

  /** Throws Fenced if the position of the partition is not `before`, because another process has moved it. */
  async append(partition: number, operations: Operation[], before: Position, after: Position): Promise<Appended> {
    const batch = { partition, operations, before, after };
    const mayShare = isSmall(operations) && !this.locked.has(partition) && !this.watched.has(partition);
    const plain = mayShare ? plainBatch(batch) : undefined;
    if (plain) {
      try {
        return await this.together.add(plain);
      } catch (error) {
        if (isLocked(error)) this.locked.add(partition);
        else if (isRepeat(error)) this.watched.set(partition, 1);
        else throw error;
      }
    }
    try {
      const alone = () => this.appendAlone(batch);
      // one that may be locked waits for the lock, and must not hold up others
      const appended = await (this.locked.has(partition) ? alone() : this.alone.execute(String(partition), alone));
      this.locked.delete(partition);
      return appended;
    } catch (error) {
      // the batch is tried again
      if (isLocked(error)) await this.events.endFrozen();
      throw error;
    }
  }

  private async appendTogether(batches: PlainBatch[]): Promise<Appended[]> {
    return this.events.transaction(async (transaction) => {
      // in the order of the partitions: two processes would otherwise wait for each other
      for (const batch of [...batches].sort((a, b) => a.partition - b.partition)) await this.advance(transaction, batch);
      const events = batches.flatMap(({ plain }) => plain);
      await this.events.add(transaction, events);
      await this.events.trim(transaction, this.dueStreams(events));
      const crowded = await this.limitStreams(transaction, events);
      return batches.map(({ plain }, index) => ({ stored: plain.length, repeated: 0, ...(index === 0 && crowded) }));
    });
  }

  private async advance(transaction: Transaction, { partition, before, after }: PartitionBatch): Promise<void> {
    if (!(await this.events.advance(transaction, partition, before, after)))
      throw new Fenced(`partition ${partition} is not at ${before.offset}`);
  }

  private async appendAlone(batch: PartitionBatch): Promise<Appended> {
    try {
      return await this.attempt(batch, this.isWatched(batch.partition));
    } catch (error) {
      if (!isRepeat(error)) throw error;
      return this.attempt(batch, true);
    }
  }

  /** Whether the next batch of the partition is looked through. */
  private isWatched(partition: number): boolean {
    const left = this.watched.get(partition);
    if (left === undefined) return false;
    if (left > 1) this.watched.set(partition, left - 1);
    else this.watched.delete(partition);
    return true;
  }

  private attempt(batch: PartitionBatch, repeats: boolean): Promise<Appended> {
    const { partition, operations, before, after } = batch;
    return this.events.transaction(async (transaction) => {
      await this.advance(transaction, batch);
      const late = lateEvents(before, firstOf(operations, partition, after), Date.now());
      if (late) await this.events.moveBack(transaction, partition, late);
      const emitted = operations.filter((operation) => operation.kind === 'event');
      const repeating = repeats ? await this.events.repeatingStreams(transaction, emitted) : undefined;
      if (repeating?.size) this.watched.set(partition, WATCHED_BATCHES);
      const { plain, toReplay } = splitBatch(operations, repeating);
      const { added, repeated } = await this.replayAll(transaction, [...toReplay]);
      await this.events.noteDeletions(
        transaction,
        operations.filter((operation) => operation.kind === 'delete'),
      );
      const events = [...plain, ...added];
      await this.events.add(transaction, events);
      await this.events.trim(transaction, this.dueStreams(plain));
      return { stored: events.length, repeated, ...(await this.limitStreams(transaction, events)) };
    });
  }

  private async replayAll(
    transaction: Transaction,
    emitters: [EmitterId, Operation[]][],
  ): Promise<{ added: EmittedEvent[]; repeated: number }> {
    const added: EmittedEvent[] = [];
    let repeated = 0;
    for (const parts of roundsOf(emitters, this.replayedTogether)) {
      const streams = parts.flatMap(({ emitterId, streams }) => [...streams].map((stream) => ({ emitterId, stream })));
      await this.events.trim(transaction, streams);
      const kept = Map.groupBy(await this.events.kept(transaction, streams), ({ emitterId }) => emitterId);
      const removed: Parameters<AppendRepository['remove']>[1] = [];
      const withdrawn: WithdrawnEmit[] = [];
      for (const { emitterId, operations, streams } of parts) {
        const result = replay(kept.get(emitterId) ?? [], operations, streams);
        added.push(...result.added);
        removed.push(...result.removed.map((event) => ({ emitterId, ...event })));
        repeated += result.repeated;
        withdrawn.push(...result.withdrawn.map((emitId) => ({ emitterId, emitId })));
      }
      await this.events.remove(transaction, removed);
      await this.events.withdraw(transaction, withdrawn);
    }
    for (const [emitterId, operations] of emitters) {
      const withdrawn = await this.removeElsewhere(transaction, emitterId, operations);
      await this.events.withdraw(
        transaction,
        withdrawn.map((emitId) => ({ emitterId, emitId })),
      );
    }
    return { added, repeated };
  }

  /** The deletions, in the streams to which nothing is added in this batch. Returns the emit ids of the events that were deleted from `$in`. */
  private removeElsewhere(transaction: Transaction, emitterId: EmitterId, operations: Operation[]): Promise<string[]> {
    const replayed = streamsOf(operations);
    const ranges = operations
      .filter((operation) => operation.kind === 'delete')
      .filter(({ stream }) => stream === null || !replayed.includes(stream));
    return this.events.removeRanges(transaction, emitterId, ranges, replayed);
  }

  private async limitStreams(transaction: Transaction, events: EmittedEvent[]): Promise<Pick<Appended, 'crowded'>> {
    const crowded: EmitterId[] = [];
    for (const emitterId of this.streams.due(events))
      if (await this.events.limitStreams(transaction, emitterId, events.length)) crowded.push(emitterId);
    return crowded.length > 0 ? { crowded } : {};
  }

  private dueStreams(events: EmittedEvent[]): StreamKey[] {
    return events.filter(({ emitterId, stream }) => this.trims.isDue(streamKey(emitterId, stream)));
  }
}

/** Whether another process holds a partition. */
const isLocked = (error: unknown): boolean => (error as { code?: unknown }).code === LOCK_NOT_AVAILABLE;

/** Whether an emit is already stored, which makes the whole transaction fail. */
const isRepeat = (error: unknown): boolean => (error as { code?: unknown }).code === UNIQUE_VIOLATION;

function isSmall(operations: Operation[]): boolean {
  if (operations.length > SMALL.events) return false;
  let bytes = 0;
  for (const operation of operations) if (operation.kind === 'event') bytes += operation.json.length;
  return bytes <= SMALL.bytes;
}

/** Undefined if the batch has more than new events to append. */
function plainBatch(batch: PartitionBatch): PlainBatch | undefined {
  const { partition, operations, before, after } = batch;
  if (lateEvents(before, firstOf(operations, partition, after), Date.now())) return undefined;
  const { plain, toReplay } = splitBatch(operations);
  return toReplay.size === 0 ? { ...batch, plain } : undefined;
}

/**
 * The stored events that would be newer than the next one, which is at `ms`: the clock has stepped back, because it was wrong or the log was replaced.
 * A log that was restored from a backup begins long before, with events that are stored already: then only events of the future have to move.
 */
export function lateEvents(before: Position, first: EventPlace, now: number): { from: number; to: number } | undefined {
  const [{ clock }, { ms }] = [before, first];
  const isAnotherLog = logPlaceOf(first).offset < before.offset;
  if (clock < ms || (clock === ms && !isAnotherLog)) return undefined;
  const isRestored = isAnotherLog && ms < Math.min(clock, now) - AHEAD_MS;
  if (!isRestored) return { from: ms, to: ms };
  return clock > now + AHEAD_MS ? { from: now + AHEAD_MS, to: ms } : undefined;
}

/** The place of the first event, or of the last record if none is an event. */
const firstOf = ([first]: Operation[], partition: number, { clock, offset }: Position): EventPlace =>
  first?.place ?? eventPlace({ clock, offset: offset - 1, partition });

/** Parts of few streams, to be replayed together: a batch may name thousands, of which an emitter may have a thousand. */
function* roundsOf(emitters: [EmitterId, Operation[]][], streamsTogether: number): Generator<ReplayedPart[]> {
  let round: ReplayedPart[] = [];
  let left = streamsTogether;
  for (const [emitterId, operations] of emitters) {
    const streams = streamsOf(operations);
    for (let start = 0; start < streams.length;) {
      const some = streams.slice(start, start + left);
      round.push({ emitterId, operations, streams: new Set(some) });
      start += some.length;
      left -= some.length;
      if (left > 0) continue;
      yield round;
      [round, left] = [[], streamsTogether];
    }
  }
  if (round.length > 0) yield round;
}

/** The streams to which this batch adds events of the emitter, or from which it removes some. */
function streamsOf(operations: Operation[]): Stream[] {
  const streams = new Set<Stream>();
  for (const operation of operations) {
    if (operation.kind === 'delete') continue;
    streams.add(operation.stream);
    if (operation.waited) streams.add(WAITING_STREAM);
  }
  return [...streams];
}
