import { InvalidArgumentError } from 'commander';
import { usageError } from './errors.js';
import { parseExactly } from './exact-json.js';
import { fileText } from './files.js';

/** Collects the values of a repeatable option. */
export const collected = (value: string, before: string[] = []): string[] => [...before, value];

/** The parser of a value that must not be empty. */
export function given(value: string): string {
  if (value === '') throw new InvalidArgumentError('It is empty: is a variable not set?');
  return value;
}

/** The JSON of `--data`: text, `@file`, or `-` for standard input. Its numbers are sent as they are written. */
export async function dataOption(text: string, stdin: () => Promise<string>): Promise<unknown> {
  const from = text === '-' ? 'standard input' : text.startsWith('@') ? text.slice(1) : undefined;
  const json = text === '-' ? await stdin() : from === undefined ? text : fileText(from);
  try {
    return parseExactly(json);
  } catch (error) {
    const { message } = error as Error;
    // the message contains a part of the text, which may be secret in a file
    const [place = ''] = / \(line \d+ column \d+\)$/.exec(message) ?? [];
    throw usageError(`--data must be JSON: ${from === undefined ? message : `${from} is not${place}`}; a string needs quotes: '"text"'`);
  }
}

/** The value of `-n`, how many to show. */
export function countOption(text: string, least: number, most: number): number {
  const number = Number(text);
  if (text === '' || !Number.isInteger(number) || number < least || number > most)
    throw usageError(`-n must be an integer from ${least} to ${most}, not ${text}`);
  return number;
}

const UNIT_MS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The value of an option that is a time for the API: `30m`, `24h` and `7d` mean that long ago. A date without hyphens would be Unix seconds in 1970. */
export function timeOption(option: string, text: string, now = Date.now()): string {
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  if (count !== undefined) return new Date(now - Number(count) * UNIT_MS[unit]!).toISOString();
  const [, year, month, day] = /^((?:19|20)\d\d)(\d\d)(\d\d)$/.exec(text) ?? [];
  if (day !== undefined) throw usageError(`${option} ${text} would be Unix seconds in 1970: write ${year}-${month}-${day}`);
  return text;
}

/** The parser of an option with one value: commander would ignore all but the last. */
export function once(value: string, before: string | undefined): string {
  if (before !== undefined) throw new InvalidArgumentError('It can be given only once; a folder may hold several files.');
  return value;
}
