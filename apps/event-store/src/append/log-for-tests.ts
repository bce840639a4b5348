import type { KafkaMessage } from 'kafkajs';
import { type EmitterId, OUTBOX_HEADER } from '#contracts';
import { deletionRecord, eventIdOf, eventPlace, type EventPlace, eventRecord, type EventToProduce, readEventRecord } from '#events';
import { AHEAD_MS, LogRecord } from '#messaging';
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
/** The time of all machines. That of the log deviates from it by less than a minute or two. */
export const NOW = 1_700_000_000_000;
/** How far the clock of a broker is ahead, in ms: it is right, within what readers accept, or beyond. */
const AHEAD = [0, 0, 0.4 * AHEAD_MS, 2 * AHEAD_MS];
/** Signs the deletions. */
export const BOX = new SecretBox([Buffer.alloc(32)]);

/** Only a run emits events that wait. */
function fromOutbox(event: Parameters<typeof eventRecord>[0]): EventToProduce {
  const { headers, ...record } = eventRecord(event);
  return { ...record, headers: { ...headers, [OUTBOX_HEADER]: '1' } };
}

/**
 * A log of two partitions that contains everything: repeated emits, floods, every kind of deletion, waiting events, a clock that steps back or is ahead
 * for some time, and partitions that lose their records.
 */
export class TestLog {
  readonly partitions: Produced[][] = EMITTERS.map(() => []);
  private readonly clocks = EMITTERS.map(() => 0);
  private readonly ahead = EMITTERS.map(() => 0);
  private readonly places = new Map<EmitterId, EventPlace[]>();
  private readonly emitted = new Map<string, string[]>();
  /** The earlier logs of each partition, which were lost. */
  readonly lost: Produced[][][] = EMITTERS.map(() => []);
  private readonly stamps = new Set<string>();
  private now = NOW;
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

  /** The clock of the broker of a partition is set, rightly or wrongly. */
  setClock(): void {
    this.ahead[this.anyPartition()] = this.pick(AHEAD) ?? 0;
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
    return fromOutbox({ emitterId, stream, emitId, json: Buffer.from('{}'), dueAt: stream === '$in' ? this.now : undefined });
  }

  private repeat(emitterId: EmitterId): EventToProduce {
    const stream = this.pick(STREAMS) ?? '';
    const recent = this.emits(emitterId, stream).slice(-150);
    return eventRecord({ emitterId, stream, emitId: this.pick(recent) ?? 'e', json: Buffer.from('{}') });
  }

  private due(emitterId: EmitterId): EventToProduce {
    const emitId = this.pick(this.emits(emitterId, '$in').slice(-20)) ?? 'e';
    return fromOutbox({ emitterId, stream: this.pick(STREAMS) ?? '', emitId, json: Buffer.from('{}'), dueAt: this.now });
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
    const timestamp = () => this.now + (this.ahead[partition] ?? 0);
    while (this.stamps.has(`${partition} ${offset} ${timestamp()}`)) this.now += 1;
    this.stamps.add(`${partition} ${offset} ${timestamp()}`);
    const before = this.clocks[partition] ?? 0;
    const clock = (this.clocks[partition] = before > NOW + AHEAD_MS ? timestamp() : Math.max(before, timestamp()));
    const message: KafkaMessage = {
      key: Buffer.from(key),
      value,
      headers,
      offset: String(offset),
      timestamp: String(timestamp()),
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
