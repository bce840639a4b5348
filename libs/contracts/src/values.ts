import { applyDecorators } from '@nestjs/common';
import { Transform } from 'class-transformer';
import { IsNotEmpty, ValidateBy, ValidateIf } from 'class-validator';

/** Whether it is text that can be stored: PostgreSQL does not accept a NUL character, and UTF-8 cannot encode an unpaired surrogate. */
export const isText = (value: unknown): value is string => typeof value === 'string' && !value.includes('\0') && value.isWellFormed();

/** The predicate of a message about a string that `isText` refuses. */
export const NOT_TEXT = 'must not contain a NUL character or an unpaired surrogate';

/** @param maxLength in characters */
export const IsText = (maxLength = Infinity): PropertyDecorator =>
  ValidateBy({
    name: 'isText',
    validator: {
      validate: (value: unknown) => isText(value) && isAtMost(maxLength, value),
      defaultMessage: (args) => {
        const { value, property } = args as { value: unknown; property: string };
        if (value === undefined) return `${property} is required`;
        if (typeof value !== 'string') return `${property} must be a string`;
        return `${property} ${isAtMost(maxLength, value) ? NOT_TEXT : `must be at most ${maxLength} characters long`}`;
      },
    },
  });

/** A character has one or two units, of which a long text has too many to be counted. */
const isAtMost = (characters: number, text: string): boolean =>
  text.length <= characters || (text.length <= 2 * characters && [...text].length <= characters);

/** Unlike `IsOptional`, which also allows null: a client that sends null would believe that it has an effect. */
export const MayBeAbsent = (): PropertyDecorator => ValidateIf((_, value) => value !== undefined);

/** A number that may come in a query string, as text. Digits only, as JSON has them: `Number` would accept `true`, 010, 1e1, 0x10 and the empty string, too. */
export const MayBeDigits = (): PropertyDecorator =>
  Transform(({ value }) => (typeof value === 'string' && /^(0|[1-9]\d{0,8})$/.test(value) ? Number(value) : (value as unknown)));

/**
 * One of the fields that choose the code of a component: optional text that is not empty. If one of the fields that take precedence over it is
 * given, it is not used, so it is not validated.
 */
export const ChoosesComponent = (...precedence: string[]): PropertyDecorator =>
  applyDecorators(
    ValidateIf(
      (body: Record<string, unknown>, value) =>
        value !== undefined && value !== null && precedence.every((field) => typeof body[field] !== 'string'),
    ),
    IsText(),
    IsNotEmpty({ message: '$property must not be empty' }),
  );

/** In characters: a page of a hundred resources must fit into a message. */
export const NAME_LENGTH = 255;
/** Of the name of a source, or of a component, from which it may come. */
export const SOURCE_NAME_LENGTH = 1024;
export const DESCRIPTION_LENGTH = 4096;
export const WEBHOOK_URL_LENGTH = 2048;

export const EXTERNAL_ID_LENGTH = 128;

/** Whether the text can be an external id. */
const isExternalId = (value: unknown): boolean => isText(value) && value !== '' && [...value].length <= EXTERNAL_ID_LENGTH;

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

/** As the API returns times. */
export const unixSeconds = (date: Date): number => Math.floor(date.getTime() / 1000);

/** The maximum nesting of JSON input. Parsing has no limit, but serializing needs a stack frame per level. */
export const MAX_JSON_DEPTH = 200;

/** Whether arrays and objects are nested deeper than the maximum. */
export function nestsTooDeeply(value: unknown, levels = MAX_JSON_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((part) => nestsTooDeeply(part, levels - 1));
}

/** As `nestsTooDeeply`, of JSON text: reading it takes much less time than parsing it. */
export function jsonNestsTooDeeply(json: string, levels = MAX_JSON_DEPTH): boolean {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (inString) {
      if (code === BACKSLASH) at++;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) inString = true;
    else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      if (++depth > levels) return true;
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth--;
  }
  return false;
}

/** The most commas, colons and opening brackets in JSON text that is parsed where others wait meanwhile: parsing costs more by them than by bytes. */
export const MAX_JSON_PARTS = 100_000;

/** Whether JSON text has more parts than `MAX_JSON_PARTS`. */
export function hasTooManyParts(json: string): boolean {
  if (json.length <= MAX_JSON_PARTS) return false;
  let parts = 0;
  let inString = false;
  for (let at = 0; at < json.length && parts <= MAX_JSON_PARTS; at++) {
    const code = json.charCodeAt(at);
    if (inString) {
      if (code === BACKSLASH) at++;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) inString = true;
    else if (code === COMMA || code === COLON || code === OPEN_LIST || code === OPEN_OBJECT) parts++;
  }
  return parts > MAX_JSON_PARTS;
}

const COMMA = 0x2c;
const COLON = 0x3a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
