import { readFileSync } from 'node:fs';
import { usageError } from './errors.js';

/** Collects the values of a repeatable option. */
export const collected = (value: string, before: string[] = []): string[] => [...before, value];

/** JSON of an option: text, `@file`, or `-` for standard input. */
export async function jsonOption(option: string, text: string, stdin: () => Promise<string>): Promise<unknown> {
  const json = text === '-' ? await stdin() : text.startsWith('@') ? fileText(text.slice(1)) : text;
  try {
    return JSON.parse(json) as unknown;
  } catch (error) {
    throw usageError(`${option} must be JSON: ${(error as Error).message}; a string needs quotes: '"text"'`);
  }
}

/** The text of a file without the line break at its end. */
export function fileText(file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw usageError(`${file} cannot be read: ${(error as Error).message}`);
  }
}
