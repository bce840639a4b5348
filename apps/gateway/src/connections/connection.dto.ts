import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import type * as contracts from '#contracts';
import { ConnectionPatch, NAME_LENGTH, NewConnection } from '#contracts';

const CREDENTIALS = { type: 'object', additionalProperties: true, example: { api_key: 'abc' } } as const;

/** A connection as the API returns it. Times are Unix seconds. */
export class Connection implements contracts.Connection {
  @ApiProperty({ type: String, example: 'apn_0Vg2mXq1Zk3TnB7cYw' }) id!: contracts.ConnectionId;
  @ApiProperty({ description: 'The app of the `app` props that take it.', example: 'slack' }) app!: string;
  @ApiProperty() name!: string;
  @ApiProperty({ ...CREDENTIALS, description: 'The names of the credentials; the values are masked.', example: { api_key: '••••••••' } })
  credentials!: Record<string, unknown>;
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Unix seconds.' }) created_at!: number;
}

export class CreateConnectionBody extends NewConnection {
  @ApiProperty({ minLength: 1, maxLength: NAME_LENGTH, example: 'slack' })
  override app!: string;

  @ApiPropertyOptional({ type: String, nullable: true, maxLength: NAME_LENGTH, description: 'Default: the app.' })
  override name?: string | null;

  @ApiProperty({ ...CREDENTIALS, minProperties: 1, description: 'At least one value. They are encrypted and never returned.' })
  override credentials!: Record<string, unknown>;
}

export class PatchConnectionBody extends ConnectionPatch {
  @ApiPropertyOptional({ type: String, nullable: true, maxLength: NAME_LENGTH, description: 'null resets it to the app.' })
  override name?: string | null;

  @ApiPropertyOptional({ ...CREDENTIALS, description: 'Merged by name; null removes a value, and a mask keeps it.' })
  override credentials?: Record<string, unknown>;
}
