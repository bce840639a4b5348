import type { EmitterId } from '#contracts';
import { DEFAULT_STREAM, type Stream } from '#events';
import type { StreamKey } from './append.repository.js';
import { streamKey } from './replay.js';

/** How many surplus events a stream may have before they are deleted. Deleting them one by one costs three times as much. */
export const SLACK = 100;

/** The most that are known: a key may have 300 bytes, and each process has 512 MiB for everything. */
const COUNTED_STREAMS = 20_000;

/**
 * Decides when a stream is trimmed: after every SLACK events. It only has to be right on average, because surplus events are never shown. A stream that
 * it does not know, after a start or because there are too many, begins at a random count.
 */
export class TrimCounter {
  private readonly counts = new Map<string, number>();

  constructor(private readonly random: () => number = Math.random) {}

  /** Counts one event; true when the stream is due, which starts its count again. */
  isDue(stream: string): boolean {
    const count = (this.counts.get(stream) ?? this.startCounting()) + 1;
    this.counts.set(stream, count < SLACK ? count : 0);
    return count >= SLACK;
  }

  private startCounting(): number {
    if (this.counts.size >= COUNTED_STREAMS) {
      const oldest = this.counts.keys().next();
      if (!oldest.done) this.counts.delete(oldest.value);
    }
    return Math.floor(this.random() * SLACK);
  }
}

/** How many new streams an emitter may have before its streams are counted. Counting takes about 30 ms for a thousand. */
const NEW_STREAMS = 500;

/**
 * Decides when the streams of an emitter are counted: after every 500 custom streams that it has not seen. An emitter without custom streams costs nothing. An
 * emitter that it does not know, after a start or because there are too many, begins at a random count, so that it is right on average.
 */
export class StreamCounter {
  private readonly seen = new Set<string>();
  private readonly unseen = new Map<EmitterId, number>();

  constructor(private readonly random: () => number = Math.random) {}

  /** The emitters whose streams should be counted now. */
  due(events: StreamKey[]): EmitterId[] {
    const due: EmitterId[] = [];
    for (const { emitterId, stream } of events)
      if (stream !== DEFAULT_STREAM && !stream.startsWith('$') && this.isDue(emitterId, stream)) due.push(emitterId);
    return [...new Set(due)];
  }

  private isDue(emitterId: EmitterId, stream: Stream): boolean {
    const key = streamKey(emitterId, stream);
    if (this.seen.has(key)) return false;
    if (this.seen.size >= COUNTED_STREAMS) {
      this.seen.clear();
      this.unseen.clear();
    }
    this.seen.add(key);
    const unseen = (this.unseen.get(emitterId) ?? Math.floor(this.random() * NEW_STREAMS)) + 1;
    this.unseen.set(emitterId, unseen % NEW_STREAMS);
    return unseen === NEW_STREAMS;
  }
}
