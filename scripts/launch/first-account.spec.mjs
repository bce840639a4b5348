import { expect, test } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readKeptKey } from './first-account.mjs';

test('the key of an earlier start is read from its file, unless the file is damaged', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-key-'));
  const file = join(folder, 'api-key');
  expect(readKeptKey(file)).toBeNull();
  for (const [text, key] of [
    ['slk_12345678\n', 'slk_12345678'],
    ['\0\0\0\0\0\0\0\0', null],
    ['slk_ä2345678', null],
    ['', null],
  ]) {
    writeFileSync(file, text ?? '');
    expect(readKeptKey(file)).toBe(key);
  }
  rmSync(folder, { recursive: true });
});
