import { Injectable } from '@nestjs/common';
import type { EmitterId } from '#contracts';
import { type EmittedEvent, eventPlace, type EventPlace, logPlaceOf, type Stream, WAITING_STREAM } from '#events';
import { type Transaction, UNIQUE_VIOLATION } from '#database';
import { AHEAD_MS, Fenced, type Position } from '#messaging';
import { AppendRepository, type StreamKey, type WithdrawnEmit } from './append.repository.js';
import { type Operation, replay, splitBatch } from './replay.js';

/** The result of a batch. */
export interface Appended {
  stored: number;
  /** Emits that were already stored. */
  repeated: number;
}

/** How many surplus events a stream may have before they are deleted. Deleting them one by one costs three times as much. */
export const SLACK = 100;

const COUNTED_STREAMS = 200_000;

/**
 * Decides when a stream is trimmed: after every SLACK events. It only has to be right on average, because surplus events are never shown. A stream that
 * it does not know, after a start or because there are too many, begins at a random count.
 */
export class TrimCounter {
  private readonly counts = new Map<string, number>();

  constructor(
    private readonly random: () => number = Math.random,
    private readonly capacity = COUNTED_STREAMS,
  ) {}

  /** Counts one event; true when the stream is due, which starts its count again. */
  isDue(stream: string): boolean {
    const count = (this.counts.get(stream) ?? this.startCounting()) + 1;
    this.counts.set(stream, count < SLACK ? count : 0);
    return count >= SLACK;
  }

  private startCounting(): number {
    if (this.counts.size >= this.capacity) {
      const oldest = this.counts.keys().next();
      if (!oldest.done) this.counts.delete(oldest.value);
    }
    return Math.floor(this.random() * SLACK);
  }
}

/** The number of emitters whose stored events are in memory at a time. */
const REPLAYED_TOGETHER = 200;

/**
 * Stores a batch of a partition in one transaction with the partition's position. Events are appended without reading stored ones; where that is not
 * enough, the emitter's operations are replayed over its stored events.
 */
@Injectable()
export class AppendService {
  constructor(
    private readonly events: AppendRepository,
    private readonly trims: TrimCounter,
  ) {}

  /** Throws Fenced if the position of the partition is not `before`, because another process has moved it. */
  async append(partition: number, operations: Operation[], before: Position, after: Position): Promise<Appended> {
    try {
      return await this.attempt(partition, operations, before, after, false);
    } catch (error) {
      if ((error as { code?: unknown }).code !== UNIQUE_VIOLATION) throw error;
      // an emit is already stored, which has made the whole transaction fail
      return this.attempt(partition, operations, before, after, true);
    }
  }

  private attempt(partition: number, operations: Operation[], before: Position, after: Position, repeats: boolean): Promise<Appended> {
    return this.events.transaction(async (transaction) => {
      if (!(await this.events.advance(transaction, partition, before, after)))
        throw new Fenced(`partition ${partition} is not at ${before.offset}`);
      const late = lateEvents(before, firstOf(operations, partition, after), Date.now());
      if (late) await this.events.moveBack(transaction, partition, late);
      const emitted = operations.filter((operation) => operation.kind === 'event');
      const { plain, toReplay } = splitBatch(operations, repeats ? await this.events.repeatingEmitters(transaction, emitted) : undefined);
      const { added, repeated } = await this.replayAll(transaction, [...toReplay]);
      await this.events.noteDeletions(
        transaction,
        operations.filter((operation) => operation.kind === 'delete'),
      );
      const events = [...plain, ...added];
      await this.events.add(transaction, events);
      await this.events.trim(transaction, this.dueStreams(plain));
      return { stored: events.length, repeated };
    });
  }

  private async replayAll(
    transaction: Transaction,
    emitters: [EmitterId, Operation[]][],
  ): Promise<{ added: EmittedEvent[]; repeated: number }> {
    const added: EmittedEvent[] = [];
    let repeated = 0;
    for (let start = 0; start < emitters.length; start += REPLAYED_TOGETHER) {
      const some = emitters.slice(start, start + REPLAYED_TOGETHER);
      const streams = some.flatMap(([emitterId, operations]) => streamsOf(operations).map((stream) => ({ emitterId, stream })));
      await this.events.trim(transaction, streams);
      const kept = Map.groupBy(await this.events.kept(transaction, streams), ({ emitterId }) => emitterId);
      const removed: Parameters<AppendRepository['remove']>[1] = [];
      const withdrawn: WithdrawnEmit[] = [];
      for (const [emitterId, operations] of some) {
        const result = replay(kept.get(emitterId) ?? [], operations);
        added.push(...result.added);
        removed.push(...result.removed.map((event) => ({ emitterId, ...event })));
        repeated += result.repeated;
        const elsewhere = await this.removeElsewhere(transaction, operations);
        withdrawn.push(...[...result.withdrawn, ...elsewhere].map((emitId) => ({ emitterId, emitId })));
      }
      await this.events.remove(transaction, removed);
      await this.events.withdraw(transaction, withdrawn);
    }
    return { added, repeated };
  }

  /** The deletions, in the streams to which nothing is added in this batch. Returns the emit ids of the events that were deleted from `$in`. */
  private async removeElsewhere(transaction: Transaction, operations: Operation[]): Promise<string[]> {
    const replayed = streamsOf(operations);
    const withdrawn: string[] = [];
    for (const operation of operations) {
      if (operation.kind === 'delete' && (operation.stream === null || !replayed.includes(operation.stream)))
        withdrawn.push(...(await this.events.removeRange(transaction, operation, replayed)));
    }
    return withdrawn;
  }

  private dueStreams(events: EmittedEvent[]): StreamKey[] {
    return events.filter(({ emitterId, stream }) => this.trims.isDue(`${emitterId} ${stream}`));
  }
}

/**
 * The stored events that would be newer than the next one, which is at `ms`: the clock has stepped back, because it was wrong or the log was replaced.
 * A log that was restored from a backup begins long before, with events that are stored already: then no event has to move.
 */
export function lateEvents(before: Position, first: EventPlace, now: number): { from: number; to: number } | undefined {
  const [{ clock }, { ms }] = [before, first];
  const isAnotherLog = logPlaceOf(first).offset < before.offset;
  if (clock < ms || (clock === ms && !isAnotherLog)) return undefined;
  if (clock > now + AHEAD_MS) return { from: now + AHEAD_MS, to: ms };
  return clock <= ms + AHEAD_MS ? { from: ms, to: ms } : undefined;
}

/** The place of the first event, or of the last record if none is an event. */
const firstOf = ([first]: Operation[], partition: number, { clock, offset }: Position): EventPlace =>
  first?.place ?? eventPlace({ clock, offset: offset - 1, partition });

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
