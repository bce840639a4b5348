import { applyDecorators } from '@nestjs/common';
import { ApiPropertyOptional } from '@nestjs/swagger';
import { ValidateBy, ValidateIf } from 'class-validator';

/** Text that can be stored: PostgreSQL does not accept a NUL character. */
export const IsText = (): PropertyDecorator =>
  ValidateBy({
    name: 'isText',
    validator: {
      validate: (value: unknown) => typeof value === 'string' && !value.includes('\0'),
      defaultMessage: (args) =>
        typeof args?.value === 'string' ? `${args.property} must not contain a NUL character` : `${args?.property} must be a string`,
    },
  });

const EXTERNAL_ID_LENGTH = 128;

/** Whether the text can be an external id: text that PostgreSQL can store and a URL can carry. */
const isExternalId = (value: unknown): boolean =>
  typeof value === 'string' && value !== '' && [...value].length <= EXTERNAL_ID_LENGTH && !value.includes('\0') && value.isWellFormed();

/** The caller's own id of a resource, unique per account and kind; null removes it. */
export const IsExternalId = (): PropertyDecorator =>
  applyDecorators(
    ApiPropertyOptional({
      type: String,
      nullable: true,
      minLength: 1,
      maxLength: EXTERNAL_ID_LENGTH,
      description: 'Your own id of it, unique within the account; null removes it.',
      example: 'order-feed-7',
    }),
    ValidateIf((_, value) => value !== undefined && value !== null),
    ValidateBy({
      name: 'isExternalId',
      validator: {
        validate: isExternalId,
        defaultMessage: (args) => `${args?.property} must be 1 to ${EXTERNAL_ID_LENGTH} characters of text`,
      },
    }),
  );

/** Selects the resource with this external id from a list; an empty one counts as absent. */
export const SelectsExternalId = (): PropertyDecorator =>
  applyDecorators(
    ApiPropertyOptional({ description: 'Only the one with this external id.' }),
    ValidateBy({
      name: 'selectsExternalId',
      validator: {
        validate: (value: unknown) => value === undefined || value === '' || isExternalId(value),
        defaultMessage: (args) => `${args?.property} must be at most ${EXTERNAL_ID_LENGTH} characters of text`,
      },
    }),
  );
