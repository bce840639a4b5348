import { ApiExtraModels, ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import type { DailyQuotas } from '#config';
import { unixSeconds, type UserId } from '#contracts';
import type { AccountRow, Usage } from './account.entity.js';

/** A free account as the API returns it. */
export class FreeUser {
  @ApiProperty({ type: String, example: 'u_0Vg2mXq1Zk3TnB7cYw' }) id!: UserId;
  @ApiProperty() username!: string;
  @ApiProperty() email!: string;
  @ApiPropertyOptional({ description: 'The key that authenticated this request; omitted if its scope is `read`.' }) api_key?: string;
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Milliseconds of run time per day; 2147483647: unlimited.' })
  daily_compute_time_quota!: number;
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Milliseconds, since 00:00 UTC.' }) daily_compute_time_used!: number;
  @ApiProperty({ type: 'integer', description: 'Runs and hooks per day; 2147483647: unlimited.' }) daily_invocations_quota!: number;
  @ApiProperty({ type: 'integer', description: 'Since 00:00 UTC.' }) daily_invocations_used!: number;
}

/** A paid account as the API returns it. */
@ApiExtraModels(FreeUser)
export class PaidUser {
  @ApiProperty({ type: String }) id!: UserId;
  @ApiProperty() username!: string;
  @ApiProperty() email!: string;
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Unix seconds.' }) billing_period_start_ts!: number;
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Unix seconds.' }) billing_period_end_ts!: number;
  @ApiProperty({ type: 'integer', description: 'Runs and hooks in the period.' }) billing_period_invocations!: number;
}

export type User = FreeUser | PaidUser;

/** Stands for unlimited where the API wants an integer. */
const UNLIMITED = 2_147_483_647;

/** The account as `GET /users/me` returns it. @param apiKey of the request; absent if it may not read secrets @param quotas null: unlimited */
export function userOf(
  { id, username, email, billing_period_start: start, billing_period_end: end }: AccountRow,
  { used, quotas, apiKey }: { used: Usage; quotas: DailyQuotas | null; apiKey?: string },
): User {
  if (start && end) {
    return {
      id,
      username,
      email,
      billing_period_start_ts: unixSeconds(start),
      billing_period_end_ts: unixSeconds(end),
      billing_period_invocations: used.invocations,
    };
  }
  return {
    id,
    username,
    email,
    ...(apiKey !== undefined && { api_key: apiKey }),
    daily_compute_time_quota: quotas?.computeMs ?? UNLIMITED,
    daily_compute_time_used: used.compute_ms,
    daily_invocations_quota: quotas?.invocations ?? UNLIMITED,
    daily_invocations_used: used.invocations,
  };
}
