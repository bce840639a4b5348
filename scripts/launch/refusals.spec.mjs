import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
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
