import {
  DEFAULT_SCALAR_STYLE_RULES,
  defineScalarTag,
  dump,
  DUMP_SCHEMA,
  floatCoreTag,
  intCoreTag,
  SCALAR_STYLE,
  type ScalarStyleRule,
  type ScalarTagDefinition,
} from 'js-yaml';
import { styleText } from 'node:util';
import { isRawJSON } from './exact-json.js';

export const FORMATS = ['table', 'json', 'ndjson', 'yaml', 'id'] as const;
export type Format = (typeof FORMATS)[number];

/** A column of a table: its heading, and the text of an item. */
export type Column<T> = [heading: string, text: (item: T) => unknown];

/** Also writes the numbers of `parseExactly`. */
const exact = (tag: ScalarTagDefinition, isOne: (number: string) => boolean): ScalarTagDefinition =>
  defineScalarTag(tag.tagName, {
    ...tag,
    identify: (value) => (isRawJSON(value) ? isOne(value.rawJSON) : (tag.identify?.(value) ?? false)),
    represent: (value) => (isRawJSON(value) ? value.rawJSON : tag.represent(value)),
  });
const isInteger = (number: string): boolean => /^-?\d+$/.test(number);
const schema = DUMP_SCHEMA.withTags([exact(intCoreTag, isInteger), exact(floatCoreTag, (number) => !isInteger(number))]);

/** In double quotes, `printable` text means the same as before. */
const quoteUnprintable: ScalarStyleRule = (layout) => {
  if (printable(layout.node.value) !== layout.node.value) layout.style = SCALAR_STYLE.DOUBLE_QUOTED;
};
const scalarStyleRules = [quoteUnprintable, ...Object.values(DEFAULT_SCALAR_STYLE_RULES)];

/** YAML that means the same after `printable`. */
export const asYaml = (value: unknown): string => dump(value, { schema, scalarStyleRules, noRefs: true, lineWidth: -1 });

/** A list in the format, with a line break at its end. */
export function listText<T>(items: T[], columns: Column<T>[], format: Format): string {
  if (format === 'json') return `${JSON.stringify(items, null, 2)}\n`;
  if (format === 'ndjson') return items.map((item) => `${JSON.stringify(item)}\n`).join('');
  if (format === 'yaml') return asYaml(items);
  if (format === 'id') return items.map((item) => itemText(item, format)).join('');
  const rows = [columns.map(([heading]) => heading), ...items.map((item) => columns.map(([, text]) => cell(text(item))))];
  const widths = columns.map((_, column) => rows.reduce((widest, row) => Math.max(widest, row[column]!.length), 0));
  return rows
    .map(
      (row) =>
        `${row
          .map((text, column) => text.padEnd(widths[column]!))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

/** One item in the format; as a table it is YAML, which people can read. */
export function itemText(item: unknown, format: Format): string {
  if (format === 'json') return `${JSON.stringify(item, null, 2)}\n`;
  if (format === 'ndjson') return `${JSON.stringify(item)}\n`;
  if (format === 'id') return `${(item as { id: string }).id}\n`;
  return asYaml(item);
}

/** Text for one cell of a table: one line without control characters and changes of the direction of text. */
export function cell(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return [...text].map((character) => (/[\p{Cc}\u2028-\u202e\u2066-\u2069]/u.test(character) ? '·' : character)).join('');
}

/**
 * Text that others wrote, for a terminal: characters that could change what it shows (control characters, line breaks of Unicode, changes of the direction of
 * text) appear as `\u001b`, which in JSON is the same.
 */
export const printable = (text: string): string =>
  text.replace(
    /[^\P{Cc}\n\t]|[\u2028-\u202e\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** Unix seconds as people read them. */
export const time = (seconds: number | null | undefined): string =>
  seconds === null || seconds === undefined ? '' : new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');

/** `1 event`, `2 events`. */
export const counted = (count: number, singular: string, plural = `${singular}s`): string => `${count} ${count === 1 ? singular : plural}`;

type Style = Parameters<typeof styleText>[0];

/** Printable text, coloured on a terminal unless NO_COLOR is set. */
export const styled = (style: Style, text: string, stream: NodeJS.WriteStream): string => styleText(style, printable(text), { stream });

/** Writes text. Resolves when the stream has passed it and all text before it on, or cannot do so because its reader has ended. */
export const written = (stream: NodeJS.WriteStream, text = ''): Promise<void> =>
  new Promise((resolve) => void stream.write(text, () => resolve()));
