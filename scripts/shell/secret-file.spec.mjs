import { afterAll, beforeEach, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keepSecret, writeSecret } from './secret-file.mjs';

describe('a file with a secret', () => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-secret-'));
  const file = join(dir, 'secret');
  beforeEach(() => rmSync(file, { force: true }));
  afterAll(() => rmSync(dir, { recursive: true }));

  const generate = () => 'generated';

  const mode = 0o400;

  it('is created with a generated value, for the owner only or for the group, too', () => {
    expect(keepSecret(file, { given: undefined, generate, mode })).toBe('created');
    expect(readFileSync(file, 'utf8')).toBe('generated\n');
    expect(statSync(file).mode & 0o777).toBe(0o400);
    expect(keepSecret(file, { given: 'given', generate, mode: 0o440 })).toBe('replaced');
    expect(statSync(file).mode & 0o777).toBe(0o440);
    expect(readdirSync(dir)).toEqual(['secret']);
  });

  it('keeps its value', () => {
    keepSecret(file, { given: undefined, generate, mode });
    expect(keepSecret(file, { given: '', generate: () => 'another', mode })).toBe('kept');
    expect(readFileSync(file, 'utf8')).toBe('generated\n');
  });

  it('is closed to others if an earlier version has created it open', () => {
    keepSecret(file, { given: undefined, generate, mode: 0o440 });
    expect(keepSecret(file, { given: undefined, generate, mode })).toBe('kept');
    expect(statSync(file).mode & 0o777).toBe(0o400);
  });

  it('stores a given value, for a new and for an existing file', () => {
    expect(keepSecret(file, { given: 'given', generate, mode })).toBe('created');
    expect(keepSecret(file, { given: 'given', generate, mode })).toBe('kept');
    expect(keepSecret(file, { given: 'other', generate, mode })).toBe('replaced');
    expect(readFileSync(file, 'utf8')).toBe('other\n');
  });

  it('is created again if it is empty', () => {
    writeFileSync(file, '');
    expect(keepSecret(file, { given: undefined, generate, mode })).toBe('created');
    expect(readFileSync(file, 'utf8')).toBe('generated\n');
  });

  it('is written as a whole: if that fails, it keeps its content', () => {
    writeSecret(file, 'first');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    mkdirSync(`${file}.${process.pid}.draft`);
    expect(() => writeSecret(file, 'second')).toThrow(`${file} cannot be written: `);
    expect(readFileSync(file, 'utf8')).toBe('first\n');
    expect(readdirSync(dir)).toEqual(['secret']);
    writeSecret(file, 'second');
    expect(readFileSync(file, 'utf8')).toBe('second\n');
  });

  it.each(["keepSecret(file, { given: 'text', generate: () => '', mode: 0o400 })", "writeSecret(file, 'text')"])(
    'is on the disk before it gets its name, and its name before the data that depends on it: %s',
    (write) => {
      const program = `
        import fs from 'node:fs';
        import { syncBuiltinESMExports } from 'node:module';
        const { fsyncSync, renameSync } = fs;
        fs.fsyncSync = (fd) => {
          console.log('flush', fs.fstatSync(fd).isDirectory() ? 'folder' : fs.readFileSync(\`\${file}.\${process.pid}.draft\`, 'utf8').trim());
          fsyncSync(fd);
        };
        fs.renameSync = (...files) => {
          console.log('rename');
          renameSync(...files);
        };
        syncBuiltinESMExports();
        const { keepSecret, writeSecret } = await import(${JSON.stringify(new URL('secret-file.mjs', import.meta.url).href)});
        const file = ${JSON.stringify(file)};
        ${write};`;
      const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' });
      expect(stdout.split('\n')).toEqual(['flush text', 'rename', 'flush folder', '']);
    },
  );
});
