import type { KafkaMessage } from 'kafkajs';
import type { EmitterId } from '#contracts';
import { deletionRecord, eventIdOf, eventPlace, type EventPlace, eventRecord, type EventToProduce, readEventRecord } from '#events';
import { LogRecord } from '#messaging';
import { SecretBox } from '#secrets';
import type { Random } from '#testing';
import type { Operation } from './replay.js';

interface Produced {
  message: KafkaMessage;
  /** With the expected clock: monotonic within the partition. */
  operation: Operation;
}

/** By partition. */
export const EMITTERS: EmitterId[][] = [['dc_a'], ['dc_b', 'dc_c']];
const STREAMS = ['', '', '', 'x'];
/** Signs the deletions. */
export const BOX = new SecretBox([Buffer.alloc(32)]);

/**
 * A log of two partitions that contains everything: repeated emits, floods, every kind of deletion, waiting events, a clock that steps back, and
 * partitions that lose their records.
 */
export class TestLog {
  readonly partitions: Produced[][] = EMITTERS.map(() => []);
  private readonly clocks = EMITTERS.map(() => 0);
  private readonly places = new Map<EmitterId, EventPlace[]>();
  private readonly emitted = new Map<string, string[]>();
  /** The earlier logs of each partition, which were lost. */
  readonly lost: Produced[][][] = EMITTERS.map(() => []);
  private readonly stamps = new Set<string>();
  private now = 1_700_000_000_000;
  private count = 0;

  constructor(private readonly random: Random) {}

  /** Appends records of one emitter: one, a few or a flood. */
  produce(partition = this.anyPartition()): void {
    const emitterId = this.pick(EMITTERS[partition] ?? []) ?? 'dc_a';
    const count = this.pick([1, 1, 3, 8, 40, 40, 130]) ?? 1;
    const stream = this.pick([...STREAMS, '$in', '$in']) ?? '';
    // a deletion in a separate batch affects streams that were not trimmed
    if (count === 1 && this.random() < 0.6) return this.append(partition, emitterId, this.deletion(emitterId));
    for (let n = 0; n < count; n++)
      this.append(partition, emitterId, count > 8 ? this.newEvent(emitterId, stream) : this.anything(emitterId));
  }

  /**
   * A partition loses its records and begins again at offset 0; the clock may have stepped back. When its reader fetches again, the new log may be
   * longer than the lost one was.
   */
  replace(): void {
    const partition = this.anyPartition();
    const lost = this.partitions[partition] ?? [];
    this.lost[partition]?.push(lost);
    const records: Produced[] = (this.partitions[partition] = []);
    this.clocks[partition] = 0;
    this.now += this.random() < 0.5 ? -1000 : 1000;
    if (this.random() < 0.5) while (records.length <= lost.length) this.produce(partition);
  }

  private anyPartition(): number {
    return this.random() < 0.6 ? 0 : 1;
  }

  private anything(emitterId: EmitterId): EventToProduce {
    const dice = this.random();
    if (dice < 0.12) return this.deletion(emitterId);
    if (dice < 0.24) return this.newEvent(emitterId, '$in');
    if (dice < 0.36) return this.due(emitterId);
    if (dice < 0.5) return this.repeat(emitterId);
    return this.newEvent(emitterId, this.pick(STREAMS) ?? '');
  }

  private newEvent(emitterId: EmitterId, stream: string): EventToProduce {
    const emitId = `e${this.count++}`;
    this.emits(emitterId, stream).push(emitId);
    return eventRecord({ emitterId, stream, emitId, json: Buffer.from('{}'), dueAt: stream === '$in' ? this.now : undefined });
  }

  private repeat(emitterId: EmitterId): EventToProduce {
    const stream = this.pick(STREAMS) ?? '';
    const recent = this.emits(emitterId, stream).slice(-150);
    return eventRecord({ emitterId, stream, emitId: this.pick(recent) ?? 'e', json: Buffer.from('{}') });
  }

  private due(emitterId: EmitterId): EventToProduce {
    const emitId = this.pick(this.emits(emitterId, '$in').slice(-20)) ?? 'e';
    return eventRecord({ emitterId, stream: this.pick(STREAMS) ?? '', emitId, json: Buffer.from('{}'), dueAt: this.now });
  }

  private deletion(emitterId: EmitterId): EventToProduce {
    const recent = (this.places.get(emitterId) ?? []).slice(this.random() < 0.5 ? -20 : -150);
    const [one, other] = [this.pick(recent), this.pick(recent)];
    const startId = one && this.random() < 0.6 ? eventIdOf(one) : undefined;
    const endId = other && this.random() < 0.6 ? eventIdOf(other) : undefined;
    const stream = this.random() < 0.5 ? this.pick([...STREAMS, '$in', '*']) : undefined;
    return deletionRecord({ emitterId, startId, endId, stream }, BOX);
  }

  private append(partition: number, emitterId: EmitterId, { key, value, headers }: EventToProduce): void {
    this.now += Math.floor(this.random() * 4) - (this.random() < 0.03 ? Math.floor(this.random() * 3000) : 0);
    const records = this.partitions[partition] ?? [];
    const offset = records.length;
    // a log is identified by the timestamp of one of its records
    while (this.stamps.has(`${partition} ${offset} ${this.now}`)) this.now += 1;
    this.stamps.add(`${partition} ${offset} ${this.now}`);
    const clock = (this.clocks[partition] = Math.max(this.clocks[partition] ?? 0, this.now));
    const message: KafkaMessage = {
      key: Buffer.from(key),
      value,
      headers,
      offset: String(offset),
      timestamp: String(this.now),
      attributes: 0,
    };
    const operation = readEventRecord(new LogRecord('events', partition, message, clock));
    if (operation.kind === 'malformed') throw new Error(operation.reason);
    records.push({ message, operation });
    const places = this.places.get(emitterId) ?? [];
    places.push(eventPlace({ clock, offset, partition }));
    this.places.set(emitterId, places);
  }

  private emits(emitterId: EmitterId, stream: string): string[] {
    const key = `${emitterId} ${stream}`;
    let emits = this.emitted.get(key);
    if (!emits) this.emitted.set(key, (emits = []));
    return emits;
  }

  private pick<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.random() * items.length)];
  }
}
