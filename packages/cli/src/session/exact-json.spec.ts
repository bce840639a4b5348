import { expect, it } from '@jest/globals';
import { parseExactly } from './exact-json.js';
import { cell, itemText } from './output.js';

const TEXT = '{"id":12345678901234567890,"huge":1e400,"price":17.00,"small":-0,"count":17,"text":"1e400","list":[9007199254740993]}';

it('numbers that JavaScript cannot represent, or writes differently, keep their text', () => {
  const event = parseExactly(TEXT);
  expect(JSON.stringify(event)).toBe(TEXT);
  expect([itemText(event, 'ndjson'), cell(event)]).toEqual([`${TEXT}\n`, TEXT]);
  expect(event).toMatchObject({ count: 17, text: '1e400' });
  expect(JSON.stringify(parseExactly('12345678901234567890'))).toBe('12345678901234567890');
});

it('numbers that keep their text are numbers in YAML, too', () => {
  expect(itemText(parseExactly(TEXT), 'yaml')).toBe(
    `id: 12345678901234567890\nhuge: !!float '1e400'\nprice: 17.00\nsmall: -0\ncount: 17\ntext: 1e400\nlist:\n  - 9007199254740993\n`,
  );
});
