import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inRoot } from '../shell/paths.mjs';
import { folderForCheck } from './refusals.mjs';

describe('the folder in which a first start checks the jail', () => {
  /** @type {string} */
  let parent;
  beforeEach(() => void (parent = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-test-')))));
  afterEach(() => rmSync(parent, { recursive: true }));

  it('is on the file system of the data folder, and other users can traverse it', () => {
    const folder = folderForCheck(join(parent, 'not', 'yet'));
    expect(dirname(folder)).toBe(parent);
    expect(statSync(folder).mode & 0o777).toBe(0o711);
  });

  it('is removed if the start is killed', async () => {
    const program = `import { folderForCheck } from '${inRoot('scripts', 'launch', 'refusals.mjs')}';
      console.log(folderForCheck('${join(parent, 'data')}'));
      setInterval(() => {}, 1000);`;
    const start = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
    const folder = String(await once(start.stdout, 'data')).trim();
    expect(existsSync(folder)).toBe(true);
    start.kill('SIGKILL');
    while (existsSync(folder)) await sleep(20);
  });

  it('cannot be created where the data folder cannot be either, which is explained', () => {
    writeFileSync(join(parent, 'file'), '');
    expect(() => folderForCheck(join(parent, 'file', 'data'))).toThrow(
      expect.objectContaining({
        name: 'ExplainedError',
        message: expect.stringContaining(`The data folder ${parent}/file/data cannot be created: ENOTDIR`),
      }),
    );
  });
});
