import { ApiExtraModels, ApiProperty } from '@nestjs/swagger';
import type { Id, UserId } from '#contracts';

export interface AccountRow {
  id: UserId;
  email: string;
  username: string;
  billing_period_start: Date | null;
  billing_period_end: Date | null;
  created_at: Date;
}

export interface ApiKeyRow {
  id: Id<'apiKey'>;
  account_id: UserId;
  hint: string;
  name: string | null;
  created_at: Date;
  revoked_at: Date | null;
}

/** What an account has used since 00:00 UTC, or since its billing period began. */
export interface Usage {
  compute_ms: number;
  invocations: number;
}

/** A free account as the API answers it. */
export class FreeUser {
  @ApiProperty({ type: String, example: 'u_0Vg2mXq1Zk3TnB7cYw' }) id!: UserId;
  @ApiProperty() username!: string;
  @ApiProperty() email!: string;
  @ApiProperty({ description: 'The key that authenticated this request.' }) api_key!: string;
  @ApiProperty({ type: 'integer', description: 'Milliseconds of run time per day; 2147483647: unlimited.' })
  daily_compute_time_quota!: number;
  @ApiProperty({ type: 'integer', description: 'Milliseconds, since 00:00 UTC.' }) daily_compute_time_used!: number;
  @ApiProperty({ type: 'integer', description: 'Runs and hooks per day; 2147483647: unlimited.' }) daily_invocations_quota!: number;
  @ApiProperty({ type: 'integer', description: 'Since 00:00 UTC.' }) daily_invocations_used!: number;
}

/** A paid account as the API answers it. */
@ApiExtraModels(FreeUser)
export class PaidUser {
  @ApiProperty({ type: String }) id!: UserId;
  @ApiProperty() username!: string;
  @ApiProperty() email!: string;
  @ApiProperty({ type: 'integer', description: 'Unix seconds.' }) billing_period_start_ts!: number;
  @ApiProperty({ type: 'integer', description: 'Unix seconds.' }) billing_period_end_ts!: number;
  @ApiProperty({ type: 'integer', description: 'Runs and hooks in the period.' }) billing_period_invocations!: number;
}

export type User = FreeUser | PaidUser;

/** Stands for unlimited where the API wants an integer. */
export const UNLIMITED = 2_147_483_647;
