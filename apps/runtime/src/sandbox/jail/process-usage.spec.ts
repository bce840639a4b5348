import { expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram } from './command-line.js';
import { processFields } from './process-usage.js';

(process.platform === 'linux' ? it : it.skip)('the state and the parent of a process do not depend on its name', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-fields-'));
  const program = join(dir, 'x) Z 1 (y');
  copyFileSync(findProgram('sleep')!, program);
  const child = spawn(program, ['60'], { argv0: 'sleep' });
  try {
    await once(child, 'spawn');
    const [state, parent] = processFields(child.pid!)!;
    expect(state).not.toBe('Z');
    expect(parent).toBe(String(process.pid));
  } finally {
    child.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  }
});

it('a process that does not exist has no fields', () => {
  expect(processFields(2 ** 31 - 1)).toBeNull();
});
