import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsIn, IsOptional } from 'class-validator';
import type { StatBucket } from '#contracts';

/** The number of buckets of a window, and their width. */
const WINDOWS = {
  '1h': { buckets: 60, bucket_s: 60 },
  '24h': { buckets: 24, bucket_s: 3600 },
  '7d': { buckets: 28, bucket_s: 6 * 3600 },
} as const;
type Window = keyof typeof WINDOWS;
const NAMES = Object.keys(WINDOWS) as Window[];

export class StatsQuery {
  @ApiPropertyOptional({
    enum: NAMES,
    enumName: 'StatsWindow',
    default: '24h',
    description: 'In buckets of 1 minute, 1 hour or 6 hours; the last one holds the present.',
  })
  @IsOptional()
  @IsIn(NAMES, { message: `window must be one of ${NAMES.join(', ')}` })
  window: Window = '24h';
}

const count = (description: string): PropertyDecorator => ApiProperty({ type: 'integer', description });
const duration = (example: number): PropertyDecorator =>
  ApiProperty({
    type: 'integer',
    nullable: true,
    example,
    description: 'Of the durations of runs or attempts, within 5 %; null: there are none.',
  });

class StatsBucket {
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Unix seconds, a multiple of `bucket_s`.', example: 1763715600 })
  start!: number;
  @count(
    'Of the default and custom streams of a source or workflow, by the time at which they were emitted. Those with a repeated emit id are included.',
  )
  events!: number;
  @count('Runs of a source that ended, hooks included.') runs!: number;
  @count('Those of them that failed.') run_errors!: number;
  @count('Attempts to deliver to a webhook, retries included.') deliveries!: number;
  @count('Those of them that failed.') delivery_failures!: number;
  @duration(12) p50_ms!: number | null;
  @duration(87) p99_ms!: number | null;
}

export class Stats {
  @ApiProperty({ type: 'integer', description: 'The width of a bucket in seconds.', enum: [60, 3600, 21600], example: 3600 })
  bucket_s!: number;

  @ApiProperty({ type: [StatsBucket], description: 'Oldest first, without gaps.' }) buckets!: StatsBucket[];
}

/** The part of the time that a window shows. */
export function partOf(window: Window, nowS: number): { from_s: number; bucket_s: number; buckets: number } {
  const { buckets, bucket_s } = WINDOWS[window];
  return { from_s: nowS - (nowS % bucket_s) - (buckets - 1) * bucket_s, bucket_s, buckets };
}

/** The buckets of the part, those in which nothing happened included. */
export function viewOf(
  { from_s, bucket_s, buckets }: ReturnType<typeof partOf>,
  { traffic, runs }: { traffic: StatBucket[]; runs: StatBucket[] },
): Stats {
  const at = (known: StatBucket[]) => new Map(known.map((bucket) => [bucket.start, bucket]));
  const [trafficAt, runsAt] = [at(traffic), at(runs)];
  return {
    bucket_s,
    buckets: Array.from({ length: buckets }, (_, index) => {
      const start = from_s + index * bucket_s;
      const [sent, ran] = [trafficAt.get(start), runsAt.get(start)];
      return {
        ...{ start, events: sent?.events ?? 0 },
        ...{ runs: ran?.ended ?? 0, run_errors: ran?.failed ?? 0 },
        ...{ deliveries: sent?.ended ?? 0, delivery_failures: sent?.failed ?? 0 },
        // of a source, routing counts no durations
        ...{ p50_ms: (ran ?? sent)?.p50_ms ?? null, p99_ms: (ran ?? sent)?.p99_ms ?? null },
      };
    }),
  };
}
