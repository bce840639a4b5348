import { expect, it } from '@jest/globals';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { inRoot } from '../shell/paths.mjs';
import { ofStories } from './run-jest.mjs';

it('selects only the stories whose path matches a pattern', () => {
  const args = [inRoot('node_modules', 'jest', 'bin', 'jest.js'), ...ofStories(['test/page-walk', '--listTests', '--json'])];
  const { stdout } = spawnSync(process.execPath, args, { cwd: inRoot(), encoding: 'utf8' });
  expect(JSON.parse(stdout)).toEqual([inRoot('test', 'page-walk.e2e-spec.ts')]);
});

it('no npm script selects projects: jest would take the patterns that follow as names of projects', async () => {
  const { scripts } = JSON.parse(await readFile(inRoot('package.json'), 'utf8'));
  expect(JSON.stringify(scripts)).not.toContain('--selectProjects');
});

it('a signal ends a test run whose packages are still being installed', async () => {
  const program = `
    import { stopJestOnSignals } from '${inRoot('scripts', 'stories', 'run-jest.mjs')}';
    stopJestOnSignals();
    console.log('installing');
    setTimeout(() => {}, 10_000);`;
  const run = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(run.stdout, 'data');
  run.kill('SIGTERM');
  expect(await once(run, 'exit')).toEqual([143, null]);
});
