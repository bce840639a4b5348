import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';

const folder = join(import.meta.dirname, '..');

it('the package that npm pack makes contains its licence', () => {
  const listed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: folder, encoding: 'utf8' });
  const [{ files }] = JSON.parse(listed) as [{ files: { path: string }[] }];
  expect(files.map(({ path }) => path)).toContain('LICENSE');
  expect(readFileSync(join(folder, 'LICENSE'), 'utf8')).toBe(readFileSync(join(folder, '..', '..', 'LICENSE'), 'utf8'));
});
