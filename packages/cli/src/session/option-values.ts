import { InvalidArgumentError } from 'commander';
import { usageError } from './errors.js';
import { parseExactly } from './exact-json.js';
import { fileText } from './files.js';

/** Collects the values of a repeatable option. */
export const collected = (value: string, before: string[] = []): string[] => [...before, value];

/** JSON of an option: text, `@file`, or `-` for standard input. Its numbers are sent as they are written. */
export async function jsonOption(option: string, text: string, stdin: () => Promise<string>): Promise<unknown> {
  const json = text === '-' ? await stdin() : text.startsWith('@') ? fileText(text.slice(1)) : text;
  try {
    return parseExactly(json);
  } catch (error) {
    throw usageError(`${option} must be JSON: ${(error as Error).message}; a string needs quotes: '"text"'`);
  }
}

/** The value of an option that is an integer. */
export function numberOption(option: string, text: string, least: number, most: number): number {
  const number = Number(text);
  if (text === '' || !Number.isInteger(number) || number < least || number > most)
    throw usageError(`${option} must be an integer from ${least} to ${most}, not ${text}`);
  return number;
}

/** The value of an option that is a time for the API. A date without hyphens would be Unix seconds in 1970. */
export function timeOption(option: string, text: string): string {
  const [, year, month, day] = /^((?:19|20)\d\d)(\d\d)(\d\d)$/.exec(text) ?? [];
  if (day !== undefined) throw usageError(`${option} ${text} would be Unix seconds in 1970: write ${year}-${month}-${day}`);
  return text;
}

/** The parser of an option with one value: commander would ignore all but the last. */
export function once(value: string, before: string | undefined): string {
  if (before !== undefined) throw new InvalidArgumentError('It can be given only once; a folder may hold several files.');
  return value;
}
