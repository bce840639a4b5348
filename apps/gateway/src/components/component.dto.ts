import { ApiProperty, ApiPropertyOptional, PickType } from '@nestjs/swagger';
import * as contracts from '#contracts';

/** A mistake that does not keep a component from running. */
export class ComponentWarning implements contracts.ComponentWarning {
  @ApiProperty() message!: string;
  @ApiProperty({ type: 'integer', nullable: true, description: 'Of the code as submitted, from 1.' }) line!: number | null;
  @ApiProperty({ type: 'integer', nullable: true, description: 'From 1.' }) column!: number | null;
}

/** A component as the API returns it. Times are Unix seconds. */
export class Component implements contracts.Component {
  @ApiProperty({ type: String, example: 'sc_0Vg2mXq1Zk3TnB7cYw' }) id!: contracts.ComponentId;
  @ApiProperty({ description: 'The full code, as submitted. For a URL whose file imports other files, one module that contains them all.' })
  code!: string;
  @ApiProperty({ description: 'SHA-256 of the UTF-8 code, in lower-case hex.' }) code_hash!: string;
  @ApiProperty() name!: string;
  @ApiProperty({ type: String, nullable: true }) version!: string | null;
  @ApiProperty({
    type: 'array',
    description: 'In the order of declaration; additional attributes of a prop are returned unchanged.',
    items: {
      title: 'PropDefinition',
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
  @ApiPropertyOptional({
    type: [ComponentWarning],
    description: 'Mistakes that do not keep the component from running; absent if there are none.',
  })
  warnings?: ComponentWarning[];
  @ApiPropertyOptional({
    type: 'object',
    additionalProperties: { type: 'string' },
    example: { 'luxon@^3': '3.4.4' },
    description:
      'The exact versions of the npm packages that were installed for the component, by import specifier; absent if there are none.',
  })
  packages?: Record<string, string>;
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Unix seconds.' }) created_at!: number;
  @ApiProperty({ type: 'integer', format: 'int64', description: 'Unix seconds.' }) updated_at!: number;
}

/** The body that creates a component. */
export class CodeSource extends contracts.CodeSource {
  @ApiPropertyOptional({ minLength: 1, description: 'The full component code.' })
  override component_code?: string;

  @ApiPropertyOptional({
    minLength: 1,
    description: 'The http or https URL of the code, at most 2048 characters. It is stored without a user name and password.',
  })
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
