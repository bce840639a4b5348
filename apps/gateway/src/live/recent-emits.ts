import { hash, randomUUID } from 'node:crypto';
import type { EventPlace, Stream } from '#events';
import type { RecentDeletions } from './recent-deletions.js';

/** Nobody can choose an id that collides with another one. */
const SALT = randomUUID();
const hashOf = (text: string): number => hash('sha256', SALT + text, 'buffer').readUIntBE(0, 6);

/** The identity of an emit, and the place of its event. Its ids are hashed once for all clients that remember it. */
export class Emit {
  readonly streamHash: number;
  readonly idHash: number;

  constructor(
    readonly stream: Stream,
    emitId: string,
    readonly place: EventPlace,
  ) {
    this.streamHash = hashOf(stream);
    this.idHash = hashOf(emitId);
  }
}

/** The number of emits of a stream that the store keeps: it skips an emit whose id is among them. */
const REMEMBERED = 100;
/** A stream needs as much memory as this many emits. */
const STREAM_COST = 5;
/** Of an emit: the hash of its id, then `ms` and `seq` of its place. */
const NUMBERS = 3;

/**
 * The last emits of each stream that a client received, so that a producer's retry, which appends an emit to the log twice, is sent once. If there are
 * too many, those of the streams that have emitted least recently are forgotten.
 *
 * An account can have thousands of clients, and an id up to 256 characters. So an emit is three numbers here, in one array for each stream: 24 bytes.
 */
export class RecentEmits {
  /** By the hash of the stream: its emits, the last one at the end. */
  private readonly streams = new Map<number, number[]>();
  private cost = 0;

  /** @param limit the number of emits that may be remembered now, of all streams together */
  constructor(private readonly limit: () => number) {}

  /**
   * Adds an emit; returns whether it is a new event. An emit id is unique within its stream, unless its event is deleted.
   * @param deletions those that an event from the log may be behind
   */
  add(emit: Emit, deletions?: RecentDeletions): boolean {
    const emits = this.emitsOf(emit);
    const known = indexOf(emits, emit);
    if (known >= 0) {
      const place = { ms: emits[known + 1]!, seq: emits[known + 2]! };
      if (!deletions?.isDeleted({ stream: emit.stream, place }, emit.place)) return false;
      this.remove(emits, known);
    }
    this.append(emits, emit);
    return true;
  }

  private emitsOf({ streamHash }: Emit): number[] {
    const known = this.streams.get(streamHash);
    if (known) return known;
    const emits: number[] = [];
    this.streams.set(streamHash, emits);
    this.cost += STREAM_COST;
    return emits;
  }

  private append(emits: number[], { streamHash, idHash, place }: Emit): void {
    // it becomes the last one
    this.streams.delete(streamHash);
    this.streams.set(streamHash, emits);
    emits.push(idHash, place.ms, place.seq);
    this.cost++;
    if (emits.length > REMEMBERED * NUMBERS) this.remove(emits, 0);
    while (this.cost > this.limit()) this.forgetOne();
  }

  private remove(emits: number[], at: number): void {
    emits.splice(at, NUMBERS);
    this.cost--;
  }

  /** Forgets the first emit of the stream that has emitted least recently. */
  private forgetOne(): void {
    const [streamHash, emits] = this.streams.entries().next().value!;
    this.remove(emits, 0);
    if (emits.length > 0) return;
    this.streams.delete(streamHash);
    this.cost -= STREAM_COST;
  }
}

/** Where the emit begins, or -1. */
function indexOf(emits: number[], { idHash }: Emit): number {
  for (let at = 0; at < emits.length; at += NUMBERS) if (emits[at] === idHash) return at;
  return -1;
}
