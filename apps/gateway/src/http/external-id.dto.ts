import { ApiPropertyOptional } from '@nestjs/swagger';

/** Documents the member `external_id` of a body. */
export const ApiExternalId = (): PropertyDecorator =>
  ApiPropertyOptional({
    type: String,
    nullable: true,
    minLength: 1,
    maxLength: 128,
    description: 'Your own id of it, unique within the account; null removes it.',
    example: 'order-feed-7',
  });

/** Documents the parameter `external_id` of a list. */
export const ApiExternalIdFilter = (): PropertyDecorator => ApiPropertyOptional({ description: 'Only the one with this external id.' });

/** Documents the member `external_id` of a resource. */
export const ApiShownExternalId = (): PropertyDecorator =>
  ApiPropertyOptional({ description: 'Your own id of it; omitted if there is none.' });
