import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { EmitterId, SourceId, StatBucket, WebhookId } from '#contracts';
import { LOG, type Log } from '#observability';
import { type Stat, StatsRepository } from './stats.repository.js';

type Counts = Omit<Stat, 'subject_id' | 'width_s' | 'start'>;

const FLUSH_MS = 10_000;
const DELETE_EVERY_MS = 600_000;
const MINUTE_S = 60;
const HOUR_S = 3600;
/** Longer than what is read of them: an hour of minutes, a week of hours. */
const KEPT_S = { [MINUTE_S]: 2 * HOUR_S, [HOUR_S]: 8 * 24 * HOUR_S };

const startOf = (timeS: number, widthS: number): number => timeS - (timeS % widthS);
const nothing = (): Counts => ({ events: 0, ended: 0, failed: 0, durations: [] });

/**
 * Counts what sources, workflows and webhooks do. The counts are gathered in memory and written every ten seconds by one statement; several replicas
 * add up. A crash loses the counts since the last write.
 */
@Injectable()
export class Stats implements OnApplicationBootstrap, OnApplicationShutdown {
  /** By the start of their minute and by subject. */
  private gathered = new Map<number, Map<string, Counts>>();
  private timers: NodeJS.Timeout[] = [];
  private flushing: Promise<void> = Promise.resolve();

  constructor(
    private readonly repository: StatsRepository,
    @Inject(LOG) private readonly log: Log,
  ) {}

  onApplicationBootstrap(): void {
    this.timers = [
      setInterval(() => void this.flush(), FLUSH_MS).unref(),
      setInterval(() => void this.deleteOld(), DELETE_EVERY_MS).unref(),
    ];
  }

  async onApplicationShutdown(): Promise<void> {
    this.timers.forEach(clearInterval);
    await this.flush();
  }

  /** Counts an event in the minute of its time, in ms, however late it is: a backlog must not look like a burst. */
  countEvent(emitterId: EmitterId, ms: number): void {
    this.countsOf(emitterId, Math.min(ms, Date.now())).events += 1;
  }

  /** A run of a source, or an attempt to deliver to a webhook. */
  countEnded(id: SourceId | WebhookId, { durationMs, failed }: { durationMs: number; failed: boolean }): void {
    const counts = this.countsOf(id, Date.now());
    counts.ended += 1;
    if (failed) counts.failed += 1;
    const slot = slotOf(durationMs);
    while (counts.durations.length <= slot) counts.durations.push(0);
    counts.durations[slot]! += 1;
  }

  /** Buckets that are not empty. Their starts are multiples of `bucketS`, which is a minute or some hours. */
  async list(id: string, fromS: number, bucketS: number): Promise<StatBucket[]> {
    await this.flush();
    const buckets = new Map<number, Counts>();
    for (const { start, ...counts } of await this.repository.list(id, bucketS === MINUTE_S ? MINUTE_S : HOUR_S, fromS))
      addTo(buckets, startOf(start, bucketS), counts);
    return [...buckets].map(([start, { events, ended, failed, durations }]) => ({
      ...{ start, events, ended, failed },
      p50_ms: percentile(durations, 0.5),
      p99_ms: percentile(durations, 0.99),
    }));
  }

  /** Writes the gathered counts. After a failure the next flush writes them. */
  flush(): Promise<void> {
    this.flushing = this.flushing.then(async () => {
      if (this.gathered.size === 0) return;
      const gathered = this.gathered;
      this.gathered = new Map();
      try {
        await this.repository.add([...rowsOf(gathered, MINUTE_S), ...rowsOf(gathered, HOUR_S)]);
      } catch (error) {
        this.log.warn({ err: error }, 'stats.not-written');
        for (const [minute, subjects] of gathered) for (const [id, counts] of subjects) addTo(this.subjectsOf(minute), id, counts);
      }
    });
    return this.flushing;
  }

  /** Deletes rows that are no longer read. Never throws: the next call repeats it. */
  async deleteOld(): Promise<void> {
    const now = Math.floor(Date.now() / 1000);
    try {
      for (const [width, keptS] of Object.entries(KEPT_S)) await this.repository.deleteBefore(Number(width), now - keptS);
    } catch (error) {
      this.log.warn({ err: error }, 'stats.not-deleted');
    }
  }

  private subjectsOf(minute: number): Map<string, Counts> {
    let subjects = this.gathered.get(minute);
    if (!subjects) this.gathered.set(minute, (subjects = new Map<string, Counts>()));
    return subjects;
  }

  private countsOf(id: string, ms: number): Counts {
    const subjects = this.subjectsOf(startOf(Math.floor(ms / 1000), MINUTE_S));
    let counts = subjects.get(id);
    if (!counts) subjects.set(id, (counts = nothing()));
    return counts;
  }
}

function addTo<Key>(sums: Map<Key, Counts>, key: Key, { events, ended, failed, durations }: Counts): void {
  let sum = sums.get(key);
  if (!sum) sums.set(key, (sum = nothing()));
  sum.events += events;
  sum.ended += ended;
  sum.failed += failed;
  addSlots(sum.durations, durations);
}

/** The counts as rows of this width, without those that would be deleted at once. */
function rowsOf(gathered: Map<number, Map<string, Counts>>, width_s: keyof typeof KEPT_S): Stat[] {
  const bySubject = new Map<number, Map<string, Counts>>();
  const oldest = Math.floor(Date.now() / 1000) - KEPT_S[width_s];
  for (const [minute, subjects] of gathered) {
    const start = startOf(minute, width_s);
    if (start < oldest) continue;
    const sums = bySubject.get(start) ?? new Map<string, Counts>();
    bySubject.set(start, sums);
    for (const [id, counts] of subjects) addTo(sums, id, counts);
  }
  return [...bySubject].flatMap(([start, sums]) => [...sums].map(([subject_id, counts]) => ({ subject_id, width_s, start, ...counts })));
}

/** Slots per doubling of the duration: a slot is 9 % wide. */
const PER_DOUBLING = 8;
/** Ends at about an hour. */
const LAST = 175;

/** The slot that counts a duration. Slot `n` ends at `2 ** (n / 8)` ms. */
export const slotOf = (ms: number): number => (ms <= 1 ? 0 : Math.min(LAST, Math.ceil(Math.log2(ms) * PER_DOUBLING)));

/** Adds the counts of slots to `into`. */
export function addSlots(into: number[], slots: readonly number[]): void {
  for (let slot = into.length; slot < slots.length; slot++) into.push(0);
  slots.forEach((count, slot) => (into[slot] = (into[slot] ?? 0) + count));
}

/** The duration in ms that this share of the counted ones does not exceed; null if none is counted. */
export function percentile(slots: readonly number[], share: number): number | null {
  const rank = share * slots.reduce((sum, count) => sum + count, 0);
  if (rank === 0) return null;
  let counted = 0;
  const slot = slots.findIndex((count) => (counted += count) >= rank);
  // the middle of the slot
  return slot === 0 ? 1 : Math.round(2 ** ((slot - 0.5) / PER_DOUBLING));
}
