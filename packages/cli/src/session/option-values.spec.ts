import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { dataOption, countOption, timeOption } from './option-values.js';

it('reads the JSON of an option from text, a file or standard input', async () => {
  expect(await dataOption('{"a":1}', async () => '')).toEqual({ a: 1 });
  expect(await dataOption('-', async () => '"text"')).toBe('text');
  await expect(dataOption('text', async () => '')).rejects.toThrow('--data must be JSON');
  await expect(dataOption('@none.json', async () => '')).rejects.toThrow('there is no file none.json');
});

it('shows no part of a file that is not JSON, because it may contain a secret', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-options-'));
  const file = join(folder, 'connection.json');
  for (const [text, place] of [
    ['{"token": hunter2secret}', ''],
    ['{"token": "hunter2secret" }}', ' (line 1 column 28)'],
  ] as const) {
    writeFileSync(file, text);
    await expect(dataOption(`@${file}`, async () => '')).rejects.toThrow(
      new Error(`--data must be JSON: ${file} is not${place}; a string needs quotes: '"text"'`),
    );
    await expect(dataOption('-', async () => text)).rejects.toThrow(`--data must be JSON: standard input is not${place};`);
  }
  rmSync(folder, { recursive: true });
});

it('keeps numbers as they are written, and drops a byte order mark', async () => {
  const text = '{"id":12345678901234567890,"huge":1e400}';
  const folder = mkdtempSync(join(tmpdir(), 'sluice-options-'));
  writeFileSync(join(folder, 'event.json'), `\ufeff${text}\n`);
  expect(JSON.stringify(await dataOption(`@${join(folder, 'event.json')}`, async () => ''))).toBe(text);
  rmSync(folder, { recursive: true });
});

it('accepts an option that is an integer in its range, and refuses other values', () => {
  expect([countOption('1', 1, 100), countOption('100', 1, 100)]).toEqual([1, 100]);
  for (const text of ['0', '101', '1.5', 'many', ''])
    expect(() => countOption(text, 1, 100)).toThrow(`-n must be an integer from 1 to 100, not ${text}`);
});

it('refuses a date that would be Unix seconds', () => {
  expect(() => timeOption('--from', '20261129')).toThrow('--from 20261129 would be Unix seconds in 1970: write 2026-11-29');
  for (const text of ['1763715600', '0', '2026-11-29', '1763715600000-0']) expect(timeOption('--from', text)).toBe(text);
});

it.each([
  ['30m', '2026-01-31T11:30:00.000Z'],
  ['24h', '2026-01-30T12:00:00.000Z'],
  ['7d', '2026-01-24T12:00:00.000Z'],
])('reads %s as a time before now', (text, time) => {
  expect(timeOption('--since', text, Date.parse('2026-01-31T12:00:00Z'))).toBe(time);
});
