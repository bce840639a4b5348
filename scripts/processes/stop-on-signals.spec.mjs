import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { inRoot } from '../shell/paths.mjs';

const SLOW_STOP = `
import { writeFileSync } from 'node:fs';
process.on('SIGTERM', () => setTimeout(() => process.exit(writeFileSync('stopped', '')), 200));
setTimeout(() => {}, 10_000);
console.log('running');
`;

test('SIGTERM to the npm process of npm start reaches the launcher, and npm ends after it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-npm-'));
  mkdirSync(join(folder, 'scripts'));
  writeFileSync(join(folder, 'scripts', 'start.mjs'), SLOW_STOP);
  const { start } = JSON.parse(readFileSync(inRoot('package.json'), 'utf8')).scripts;
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', scripts: { start } }));
  const npm = spawn('npm', ['start'], { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] });
  npm.stdout.setEncoding('utf8').on('data', (text) => text.includes('running') && npm.kill('SIGTERM'));
  await once(npm, 'exit');
  expect(existsSync(join(folder, 'stopped'))).toBe(true);
  rmSync(folder, { recursive: true });
});
