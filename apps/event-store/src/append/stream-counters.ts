import type { EmitterId } from '#contracts';
import { DEFAULT_STREAM, type Stream } from '#events';
import { KEPT_STREAMS, type StreamKey } from './append.repository.js';

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

interface SeenStreams {
  streams: Set<Stream>;
  /** How many were new since they were counted. */
  unseen: number;
}

/**
 * Decides when the streams of an emitter are counted: after every 500 custom streams that it has not seen. An emitter without custom streams costs nothing. An
 * emitter that it does not know, after a start or because there are too many, begins at a random count, so that it is right on average.
 */
export class StreamCounter {
  private readonly emitters = new Map<EmitterId, SeenStreams>();
  /** The number of streams seen. */
  private count = 0;

  constructor(private readonly random: () => number = Math.random) {}

  /** The emitters whose streams should be counted now. */
  due(events: StreamKey[]): EmitterId[] {
    const due: EmitterId[] = [];
    for (const { emitterId, stream } of events)
      if (stream !== DEFAULT_STREAM && !stream.startsWith('$') && this.isDue(emitterId, stream)) due.push(emitterId);
    return [...new Set(due)];
  }

  private isDue(emitterId: EmitterId, stream: Stream): boolean {
    if (this.emitters.get(emitterId)?.streams.has(stream)) return false;
    if (this.count >= COUNTED_STREAMS) {
      this.emitters.clear();
      this.count = 0;
    }
    const seen = this.emitters.get(emitterId) ?? { streams: new Set(), unseen: Math.floor(this.random() * NEW_STREAMS) };
    this.emitters.set(emitterId, seen);
    seen.streams.add(stream);
    this.count++;
    seen.unseen++;
    if (seen.unseen < NEW_STREAMS) return false;
    seen.unseen = 0;
    if (seen.streams.size > KEPT_STREAMS) {
      // some of them are deleted, or will be now: these are new when they are named again
      this.count -= seen.streams.size;
      seen.streams.clear();
    }
    return true;
  }
}
