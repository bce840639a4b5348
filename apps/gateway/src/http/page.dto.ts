import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import type * as contracts from '#contracts';
import { ValidateBy } from 'class-validator';
import { decodedCursor, EXTERNAL_ID_LENGTH, PageRequest, SelectsExternalId } from '#contracts';

/** A cursor of any list, which the list may yet refuse: so a request with other errors gets all of them. An empty one counts as absent. */
const IsCursor = (): PropertyDecorator =>
  ValidateBy({
    name: 'isCursor',
    validator: {
      validate: (value: unknown) => value === undefined || (typeof value === 'string' && decodedCursor(value) !== undefined),
      defaultMessage: (args) => `${args?.property} is not a cursor of this list`,
    },
  });

/** The parameters of a list, without the form of its cursors. */
export class PageParameters extends PageRequest {
  @ApiPropertyOptional({ type: 'integer', minimum: 1, maximum: 100, default: 10, description: 'The number of items per page.' })
  override limit!: number;

  @ApiPropertyOptional({ description: 'A cursor: return only items after it, that is, older ones. An empty one counts as absent.' })
  override after?: string;

  @ApiPropertyOptional({ description: 'A cursor: return only items before it, that is, newer ones. An empty one counts as absent.' })
  override before?: string;
}

/** The parameters of a list. */
export class PageQuery extends PageParameters {
  @IsCursor()
  override after?: string;

  @IsCursor()
  override before?: string;
}

export class PageInfo implements contracts.PageInfo {
  @ApiProperty({ type: 'integer', description: 'The number of items in the whole collection, regardless of the cursors.' })
  total_count!: number;
  @ApiProperty({ type: 'integer', description: 'The number of items in this page.' })
  count!: number;
  @ApiProperty({ type: String, nullable: true, description: 'The cursor of the first item in the page; null if the page is empty.' })
  start_cursor!: string | null;
  @ApiProperty({ type: String, nullable: true, description: 'The cursor of the last item in the page; null if the page is empty.' })
  end_cursor!: string | null;
}

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
