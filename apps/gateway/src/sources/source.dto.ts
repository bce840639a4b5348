import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { Allow, IsBoolean } from 'class-validator';
import type * as contracts from '#contracts';
import { MayBeAbsent, NewSource, SOURCE_NAME_LENGTH, SourcePatch } from '#contracts';
import { ANY_JSON } from '../http/api-docs.js';
import { DescribesExternalId } from '../http/page.dto.js';

/** A source as the API returns it. Times are Unix seconds. */
export class Source implements contracts.Source {
  @ApiProperty({ type: String, example: 'dc_0Vg2mXq1Zk3TnB7cYw' }) id!: contracts.SourceId;
  @ApiPropertyOptional({ type: String, description: 'The owner; omitted in lists.', example: 'u_0Vg2mXq1Zk3TnB7cYw' })
  user_id?: contracts.UserId;
  @ApiProperty({ type: String, example: 'sc_0Vg2mXq1Zk3TnB7cYw' }) component_id!: contracts.ComponentId;
  @ApiProperty({
    type: 'object',
    additionalProperties: true,
    description: 'The values by prop. The value of a timer is `{cron, interval_seconds}`; that of an HTTP interface is `{endpoint_url}`.',
    example: { timer: { cron: null, interval_seconds: 60 } },
  })
  configured_props!: Record<string, unknown>;
  @ApiProperty() active!: boolean;
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Unix seconds.' }) created_at!: number;
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Unix seconds.' }) updated_at!: number;
  @ApiProperty() name!: string;
  @ApiProperty({ description: 'Unique within the account.' }) name_slug!: string;
  @ApiPropertyOptional({ description: 'Your own id of it; omitted if there is none.' }) external_id?: string;
}

export class CreateSourceBody extends NewSource {
  @ApiPropertyOptional({ minLength: 1, description: 'The full component code.' })
  override component_code?: string;

  @ApiPropertyOptional({ minLength: 1, description: 'The http or https URL of the code.' })
  override component_url?: string;

  @ApiPropertyOptional({
    type: String,
    minLength: 1,
    description: 'The id of an existing component; takes precedence over the other ways to choose one.',
  })
  override component_id?: string;

  @ApiPropertyOptional({ type: String, maxLength: SOURCE_NAME_LENGTH, description: "Default: the slug of the component's name." })
  override name?: string | null;

  // null is accepted, but not described: it would give the type another name in generated clients
  @ApiPropertyOptional({ type: 'object', additionalProperties: true, description: "Values of the component's props." })
  override configured_props?: Record<string, unknown> | null;

  @ApiPropertyOptional({ description: 'The key of a component in the registry.' })
  override key?: string;

  @DescribesExternalId()
  override external_id?: string | null;
}

export class UpdateSourceBody extends CreateSourceBody {
  @ApiPropertyOptional({ type: Boolean, description: 'false disables the source, true enables it; default: true.' })
  @MayBeAbsent()
  @IsBoolean({ message: 'active must be true or false' })
  active?: boolean;
}

export class PatchSourceBody extends SourcePatch {
  @ApiPropertyOptional({ minLength: 1, description: 'The full component code.' })
  override component_code?: string;

  @ApiPropertyOptional({ minLength: 1, description: 'The http or https URL of the code.' })
  override component_url?: string;

  @ApiPropertyOptional({ type: String, minLength: 1, description: 'The id of an existing component.' })
  override component_id?: string;

  @ApiPropertyOptional({ description: 'The key of a component in the registry.' })
  override key?: string;

  @ApiPropertyOptional({
    type: String,
    nullable: true,
    maxLength: SOURCE_NAME_LENGTH,
    description: "null resets it to the slug of the component's name.",
  })
  override name?: string | null;

  @DescribesExternalId()
  override external_id?: string | null;

  @ApiPropertyOptional({ type: Boolean, description: 'false disables the source, true enables it.' })
  override active?: boolean;

  @ApiPropertyOptional({
    type: 'object',
    additionalProperties: true,
    description: 'Values by prop: the value of each given prop is replaced as a whole, null removes it, and other props keep their values.',
  })
  override configured_props?: Record<string, unknown>;
}

export class RunSourceBody {
  @ApiPropertyOptional({ ...ANY_JSON, description: 'The event passed to `run`: any JSON value.' })
  @Allow()
  event?: unknown;
}
