import { execFileSync } from 'node:child_process';
import { closeSync, fstatSync, openSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';

const folder = join(import.meta.dirname, '..');

it('the package that npm pack makes contains its licence', () => {
  const listed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: folder, encoding: 'utf8' });
  const [{ files }] = JSON.parse(listed) as [{ files: { path: string }[] }];
  expect(files.map(({ path }) => path)).toContain('LICENSE');
  expect(readFileSync(join(folder, 'LICENSE'), 'utf8')).toBe(readFileSync(join(folder, '..', '..', 'LICENSE'), 'utf8'));
});

it('a command that reads the bundle while it is built again reads the former one to its end', () => {
  const build = (): unknown => execFileSync(process.execPath, ['build.mjs'], { cwd: folder });
  const bundle = join(folder, 'dist', 'sluice.mjs');
  build();
  const former = openSync(bundle, 'r');
  build();
  // in the same file, the new text would replace what is not read yet
  expect(statSync(bundle).ino).not.toBe(fstatSync(former).ino);
  closeSync(former);
  expect(readdirSync(join(folder, 'dist')).sort()).toEqual(['LICENSES.txt', 'sluice.mjs']);
});
