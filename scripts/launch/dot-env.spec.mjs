import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { loadDotEnv, parseDotEnv } from './dot-env.mjs';

test('.env may contain plain values, quotes, comments and export', () => {
  const text = `
# a comment
BARE=some value
COMMENTED=value # why
HASH=a#b
SINGLE='  kept # as it is '
DOUBLE="two\\nlines"
EMPTY=
  export EXPORTED=1
not a variable
URL=postgres://u:p@host:5432/db?a=b
`;
  expect(parseDotEnv(text)).toEqual({
    BARE: 'some value',
    COMMENTED: 'value',
    HASH: 'a#b',
    SINGLE: '  kept # as it is ',
    DOUBLE: 'two\nlines',
    EMPTY: '',
    EXPORTED: '1',
    URL: 'postgres://u:p@host:5432/db?a=b',
  });
});

test('.env may have Windows line endings', () => {
  expect(parseDotEnv('A=1\r\nB="2"\r\nC=\r\nD=4\r\n')).toEqual({ A: '1', B: '2', C: '', D: '4' });
});

test('.env may be missing, but a start fails if it cannot be read', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-env-'));
  expect(() => loadDotEnv(join(folder, '.env'))).not.toThrow();
  // root can read every file
  expect(() => loadDotEnv(folder)).toThrow(`${folder} cannot be read: EISDIR`);
  rmSync(folder, { recursive: true });
});
