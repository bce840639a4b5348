import { ValidateBy } from 'class-validator';

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

/** Text that PostgreSQL and UTF-8 can store: replaces a NUL character or an unpaired surrogate by U+FFFD. */
export const storableText = (text: string): string => text.toWellFormed().replaceAll('\0', '\uFFFD');

/** The maximum nesting of JSON input. Parsing has no limit, but serializing needs a stack frame per level. */
export const MAX_JSON_DEPTH = 200;

/** Whether arrays and objects are nested deeper than the maximum. */
export function nestsTooDeeply(value: unknown, levels = MAX_JSON_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((part) => nestsTooDeeply(part, levels - 1));
}
