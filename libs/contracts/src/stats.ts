import { IsInt } from 'class-validator';
import { query } from './contract.js';
import { type EmitterId, IsId, type SourceId, type UserId, type WebhookId } from './ids.js';

/** The counts of a subject in one period, as far as one service knows them. */
export interface StatBucket {
  /** Unix seconds. */
  start: number;
  events: number;
  /** Runs of a source; attempts to deliver to a webhook. */
  ended: number;
  failed: number;
  /** Of the durations of those that ended; null: none has. */
  p50_ms: number | null;
  p99_ms: number | null;
}

class StatsWindow {
  @IsId('user') owner_id!: UserId;
  /** Unix seconds, a multiple of `bucket_s`. */
  @IsInt() from_s!: number;
  /** 60, or a multiple of 3600. */
  @IsInt() bucket_s!: number;
}

export class TrafficStats extends StatsWindow {
  @IsId('source', 'workflow', 'webhook') id!: EmitterId | WebhookId;
}
/** The events of an emitter or the attempts to deliver to a webhook, in buckets that are not empty. */
export const trafficStats = query<StatBucket[]>()('routing.stats.get', TrafficStats);

export class RunStats extends StatsWindow {
  @IsId('source') id!: SourceId;
}
/** The runs of a source, in buckets that are not empty. */
export const runStats = query<StatBucket[]>()('runtime.stats.get', RunStats);
