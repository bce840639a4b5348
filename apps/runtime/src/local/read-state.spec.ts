import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readState } from './read-state.js';

describe('the file of --state', () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'state-'));
    file = join(folder, 'state.json');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('reads an empty state if there is no file', async () => {
    const fresh = { db: {}, dedupe: {} };
    expect([await readState(undefined), await readState(file)]).toEqual([fresh, fresh]);
  });

  it('may not be in a folder that does not exist, because it could not be written after the run', async () => {
    const message = expect.stringMatching(/^--state: .*state\.json cannot be written: ENOENT/);
    await expect(readState(join(folder, 'none', 'state.json'))).rejects.toMatchObject({ code: 'invalid', message });
  });

  it.each([
    ['{}', { db: {}, dedupe: {} }],
    ['{"db":{"n":1}}', { db: { n: 1 }, dedupe: {} }],
    ['{"db":{},"dedupe":{"last":"a"}}', { db: {}, dedupe: { last: 'a' } }],
  ])('may contain %s', async (text, state) => {
    writeFileSync(file, text);
    expect(await readState(file)).toEqual(state);
  });

  it.each([
    ['', 'is not JSON'],
    ['[]', 'must contain a JSON object'],
    ['null', 'must contain a JSON object'],
    ['{"db":null}', 'db and dedupe of'],
    ['{"dedupe":[1]}', 'db and dedupe of'],
  ])('may not contain %j, because it %s', async (text, problem) => {
    writeFileSync(file, text);
    await expect(readState(file)).rejects.toMatchObject({ code: 'invalid', message: expect.stringContaining(problem) });
  });
});
