import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { jsonOption, numberOption, timeOption } from './option-values.js';

it('reads the JSON of an option from text, a file or standard input', async () => {
  expect(await jsonOption('--data', '{"a":1}', async () => '')).toEqual({ a: 1 });
  expect(await jsonOption('--data', '-', async () => '"text"')).toBe('text');
  await expect(jsonOption('--data', 'text', async () => '')).rejects.toThrow('--data must be JSON');
  await expect(jsonOption('--data', '@none.json', async () => '')).rejects.toThrow('there is no file none.json');
});

it('keeps numbers as they are written, and drops a byte order mark', async () => {
  const text = '{"id":12345678901234567890,"huge":1e400}';
  const folder = mkdtempSync(join(tmpdir(), 'sluice-options-'));
  writeFileSync(join(folder, 'event.json'), `\ufeff${text}\n`);
  expect(JSON.stringify(await jsonOption('--data', `@${join(folder, 'event.json')}`, async () => ''))).toBe(text);
  rmSync(folder, { recursive: true });
});

it('accepts an option that is an integer in its range, and refuses other values', () => {
  expect([numberOption('-n', '1', 1, 100), numberOption('-n', '100', 1, 100)]).toEqual([1, 100]);
  for (const text of ['0', '101', '1.5', 'many', ''])
    expect(() => numberOption('-n', text, 1, 100)).toThrow(`-n must be an integer from 1 to 100, not ${text}`);
});

it('refuses a date that would be Unix seconds', () => {
  expect(() => timeOption('--from', '20261129')).toThrow('--from 20261129 would be Unix seconds in 1970: write 2026-11-29');
  for (const text of ['1763715600', '0', '2026-11-29', '1763715600000-0']) expect(timeOption('--from', text)).toBe(text);
});
