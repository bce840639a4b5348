import { ApiProperty, ApiPropertyOptional, PickType } from '@nestjs/swagger';
import * as contracts from '#contracts';

/** A component as the API returns it. Times are Unix seconds. */
export class Component implements contracts.Component {
  @ApiProperty({ type: String, example: 'sc_0Vg2mXq1Zk3TnB7cYw' }) id!: contracts.ComponentId;
  @ApiProperty({ description: 'The full code, as submitted.' }) code!: string;
  @ApiProperty({ description: 'SHA-256 of the UTF-8 code, in lower-case hex.' }) code_hash!: string;
  @ApiProperty() name!: string;
  @ApiProperty({ type: String, nullable: true }) version!: string | null;
  @ApiProperty({
    type: 'array',
    description: 'In the order of declaration; additional attributes of a prop are returned unchanged.',
    items: {
      type: 'object',
      required: ['name', 'type'],
      properties: {
        name: { type: 'string' },
        type: { type: 'string' },
        label: { type: 'string' },
        description: { type: 'string' },
        default: {},
      },
      additionalProperties: true,
    },
  })
  configurable_props!: contracts.PropDefinition[];
  @ApiProperty({ type: 'integer', description: 'Unix seconds.' }) created_at!: number;
  @ApiProperty({ type: 'integer', description: 'Unix seconds.' }) updated_at!: number;
}

/** The body that creates a component. */
export class CodeSource extends contracts.CodeSource {
  @ApiPropertyOptional({ description: 'The full component code.' })
  override component_code?: string;

  @ApiPropertyOptional({ description: 'The http or https URL of the code.' })
  override component_url?: string;
}

/** A component as lists of the registry show it: without its code. */
export class RegisteredComponent
  extends PickType(Component, ['id', 'name', 'version', 'configurable_props'])
  implements contracts.RegisteredComponent
{
  @ApiProperty({ example: 'http-request' }) key!: string;
  @ApiProperty({ type: String, nullable: true }) description!: string | null;
}
