import { describe, expect, test } from '@jest/globals';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SECRET_VARIABLES, secretsInFiles } from './secrets-in-files.mjs';

describe('secrets of the environment', () => {
  test('include all those that the services declare', () => {
    const example = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8').replaceAll('\n# ', ' ');
    const declared = [...example.matchAll(/Or (\w+)_FILE: a file/g)].map(([, name]) => name);
    // the launcher reads it and does not pass it on
    expect(declared.filter((name) => name !== 'SLUICE_API_KEY').sort()).toEqual([...SECRET_VARIABLES].sort());
  });

  test('are moved into files that only their owner can read, and removed from there with their variables', () => {
    const folder = join(mkdtempSync(join(tmpdir(), 'sluice-test-')), 'secrets');
    const replaced = secretsInFiles({ DATABASE_PASSWORD: 'x y', SLUICE_SMTP_URL: '', PATH: '/bin' }, folder);
    const file = join(folder, 'DATABASE_PASSWORD');
    expect(replaced).toEqual({ DATABASE_PASSWORD: '', DATABASE_PASSWORD_FILE: file });
    expect(readFileSync(file, 'utf8')).toBe('x y\n');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(secretsInFiles({ DATABASE_PASSWORD_FILE: file }, folder)).toEqual({});
    expect(existsSync(file)).toBe(true);
    expect(secretsInFiles({}, folder)).toEqual({});
    expect(existsSync(file)).toBe(false);
    rmSync(folder, { recursive: true });
  });
});
