import { ApiPropertyOptional } from '@nestjs/swagger';
import { EXTERNAL_ID_LENGTH, SelectsExternalId } from '#contracts';
import { PageQuery } from './page.dto.js';

/** The caller's own id of a resource, in a body. */
export const DescribesExternalId = (): PropertyDecorator =>
  ApiPropertyOptional({
    type: String,
    nullable: true,
    minLength: 1,
    maxLength: EXTERNAL_ID_LENGTH,
    description: 'Your own id of it, unique within the account; null removes it.',
  });

/** The parameters of a list whose items may have external ids. */
export class ExternalIdQuery extends PageQuery {
  @ApiPropertyOptional({ description: 'Only the one with this external id.' })
  @SelectsExternalId()
  external_id?: string;
}
