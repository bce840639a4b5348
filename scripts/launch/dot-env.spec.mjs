import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
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
COLON: as in YAML
LINES='a
# b'
ENDS="quoted" # why
INSIDE=O'Neil
URL=postgres://u:p@host:5432/db?a=b
`;
  expect(parseDotEnv(text).variables).toEqual({
    BARE: 'some value',
    COMMENTED: 'value',
    HASH: 'a#b',
    SINGLE: '  kept # as it is ',
    DOUBLE: 'two\nlines',
    EMPTY: '',
    EXPORTED: '1',
    COLON: 'as in YAML',
    LINES: 'a\n# b',
    ENDS: 'quoted',
    INSIDE: "O'Neil",
    URL: 'postgres://u:p@host:5432/db?a=b',
  });
});

test('.env may have Windows line endings and a byte order mark', () => {
  expect(parseDotEnv('\ufeffA=1\r\nB="2"\r\nC=\r\n\r\nD=4')).toEqual({ variables: { A: '1', B: '2', C: '', D: '4' } });
});

test.each([
  ['no value', 'A=1\nSLUICE_DATA_DIR\n', 2],
  ['a name with a space', 'MY NAME=1\n', 1],
  ['a quote that does not end', "A=1\n\nPASS='a\nB=2\n", 3],
  ['a quote that ends in another line', "PASS='a\nB=2\nC='x'\n", 1],
  ['text after a quoted value', 'A="x" y\n', 1],
])('.env is refused if a line is not understood: %s', (_, text, wrongLine) => {
  expect(parseDotEnv(text).wrongLine).toBe(wrongLine);
});

test('.env may be missing, but a start fails if it cannot be read or understood', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-env-'));
  expect(() => loadDotEnv(join(folder, '.env'))).not.toThrow();
  // root can read every file
  expect(() => loadDotEnv(folder)).toThrow(`${folder} cannot be read: EISDIR`);
  writeFileSync(join(folder, '.env'), 'SLUICE_TEST_DOT_ENV=1\nsecret\n');
  expect(() => loadDotEnv(join(folder, '.env'))).toThrow(
    /^Line 2 of \/.*\.env must be NAME=value; quotes enclose the whole value, and cannot be part of it\.$/,
  );
  expect(process.env['SLUICE_TEST_DOT_ENV']).toBeUndefined();
  rmSync(folder, { recursive: true });
});
