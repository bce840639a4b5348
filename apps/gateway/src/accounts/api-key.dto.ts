import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsIn, IsOptional } from 'class-validator';
import { type Id, IsText, NAME_LENGTH, unixSeconds } from '#contracts';
import { type ApiKeyRow, KEY_SCOPES, type KeyScope } from './account.entity.js';

/** A key as the API returns it. Times are Unix seconds. */
export class ApiKey {
  @ApiProperty({ type: String, example: 'key_0Vg2mXq1Zk3TnB7cYw' }) id!: Id<'apiKey'>;
  @ApiProperty({ type: String, nullable: true, example: 'dashboard' }) name!: string | null;
  @ApiProperty({ enum: KEY_SCOPES, enumName: 'KeyScope', description: '`read`: only GET, and no secrets.' }) scope!: KeyScope;
  @ApiProperty({ description: 'The first characters of the key.', example: 'slk_0Vg2' }) prefix!: string;
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Unix seconds.' }) created_at!: number;
  @ApiProperty({ type: 'integer', format: 'int64', nullable: true, description: 'Unix seconds, a few seconds behind; null: never.' })
  last_used_at!: number | null;
}

export class CreatedApiKey extends ApiKey {
  @ApiProperty({ description: 'The key itself. It is shown only now.' }) key!: string;
}

export class CreateKeyBody {
  @ApiPropertyOptional({ type: String, nullable: true, maxLength: NAME_LENGTH, example: 'dashboard' })
  @IsOptional()
  @IsText(NAME_LENGTH)
  name?: string | null;

  @ApiPropertyOptional({ enum: KEY_SCOPES, enumName: 'KeyScope', description: '`read`: only GET, and no secrets; default: `write`.' })
  @IsOptional()
  @IsIn(KEY_SCOPES, { message: 'scope must be read or write' })
  scope?: KeyScope | null;
}

export const apiKeyOf = ({
  id,
  name,
  scope,
  prefix,
  created_at,
  last_used_at,
}: Omit<ApiKeyRow, 'account_id' | 'hash' | 'revoked_at' | 'by_operator'>): ApiKey => ({
  id,
  name,
  scope,
  prefix,
  created_at: unixSeconds(created_at),
  last_used_at: last_used_at && unixSeconds(last_used_at),
});
