import { describe, expect, it } from '@jest/globals';
import { load } from 'js-yaml';
import { type Column, itemText, listText, printable, time } from './output.js';

const ITEMS = [
  { id: 'dc_1', name: 'Orders' },
  { id: 'dc_22', name: 'two\nlines\u001b[31m' },
];
const COLUMNS: Column<(typeof ITEMS)[number]>[] = [
  ['ID', ({ id }) => id],
  ['NAME', ({ name }) => name],
];

describe('listText', () => {
  it('prints only the ids with -o id, one per line', () => {
    expect(listText(ITEMS, COLUMNS, 'id')).toBe('dc_1\ndc_22\n');
    expect(itemText(ITEMS[0], 'id')).toBe('dc_1\n');
  });

  it('aligns the columns of a table and removes control characters', () => {
    expect(listText(ITEMS, COLUMNS, 'table')).toBe('ID     NAME\ndc_1   Orders\ndc_22  two·lines·[31m\n');
  });

  it.each([
    ['json', `${JSON.stringify(ITEMS, null, 2)}\n`],
    ['ndjson', `${JSON.stringify(ITEMS[0])}\n${JSON.stringify(ITEMS[1])}\n`],
    ['yaml', '- id: dc_1\n  name: Orders\n- id: dc_22\n  name: "two\\nlines\\e[31m"\n'],
  ] as const)('writes %s', (format, text) => {
    expect(listText(ITEMS, COLUMNS, format)).toBe(text);
  });

  it('has a table of more rows than a function can have arguments', () => {
    const text = listText(new Array(200_000).fill(ITEMS[0]), COLUMNS, 'table');
    expect([text.slice(0, 23), text.split('\n').length]).toEqual(['ID    NAME\ndc_1  Orders', 200_002]);
  });

  it('has a heading for an empty table, and nothing for empty ndjson', () => {
    expect([listText([], COLUMNS, 'table'), listText([], COLUMNS, 'ndjson'), listText([], COLUMNS, 'json')]).toEqual([
      'ID  NAME\n',
      '',
      '[]\n',
    ]);
  });
});

it('itemText shows one item as YAML, as JSON or as a line of JSON', () => {
  expect([itemText({ a: 1 }, 'table'), itemText({ a: 1 }, 'json'), itemText({ a: 1 }, 'ndjson')]).toEqual([
    'a: 1\n',
    '{\n  "a": 1\n}\n',
    '{"a":1}\n',
  ]);
});

it.each(['\u202e', 'a \u2066 b', 'two\nlines \u202a', '\u001b[31m', '\u2028'])('printable YAML of %j means the same', (text) => {
  const shown = printable(itemText({ [text]: text, list: [text] }, 'yaml'));
  expect(shown).not.toContain(text);
  expect(load(shown)).toEqual({ [text]: text, list: [text] });
});

it('time shows Unix seconds, and nothing for null', () => {
  expect([time(1_763_715_600), time(null)]).toEqual(['2025-11-21T09:00:00Z', '']);
});
