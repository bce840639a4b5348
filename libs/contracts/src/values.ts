import { applyDecorators } from '@nestjs/common';
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

/** In characters: a page of a hundred resources must fit into a message. */
export const NAME_LENGTH = 255;
/** Of the name of a source, or of a component, from which it may come. */
export const SOURCE_NAME_LENGTH = 1024;
export const DESCRIPTION_LENGTH = 4096;

export const EXTERNAL_ID_LENGTH = 128;

/** Whether the text can be an external id: text that PostgreSQL can store and a URL can carry. */
const isExternalId = (value: unknown): boolean =>
  typeof value === 'string' && value !== '' && [...value].length <= EXTERNAL_ID_LENGTH && !value.includes('\0') && value.isWellFormed();

/** The caller's own id of a resource, unique per account and kind; null removes it. */
export const IsExternalId = (): PropertyDecorator =>
  applyDecorators(
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
  ValidateBy({
    name: 'selectsExternalId',
    validator: {
      validate: (value: unknown) => value === undefined || value === '' || isExternalId(value),
      defaultMessage: (args) => `${args?.property} must be at most ${EXTERNAL_ID_LENGTH} characters of text`,
    },
  });

/** Text that PostgreSQL and UTF-8 can store: replaces a NUL character or an unpaired surrogate by U+FFFD. */
export const storableText = (text: string): string => text.toWellFormed().replaceAll('\0', '\uFFFD');

/** The maximum nesting of JSON input. Parsing has no limit, but serializing needs a stack frame per level. */
export const MAX_JSON_DEPTH = 200;

/** Whether arrays and objects are nested deeper than the maximum. */
export function nestsTooDeeply(value: unknown, levels = MAX_JSON_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((part) => nestsTooDeeply(part, levels - 1));
}
