import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { withSourcePositions } from './source-positions.js';

describe('the positions in a stack', () => {
  let folder: string;
  beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'sluice-positions-'))));
  afterAll(() => rmSync(folder, { recursive: true }));

  /** A file whose second line, from its sixth column on, is the third line of a source. */
  const fileWithMap = (name: string) => {
    writeFileSync(join(folder, `${name}.map`), JSON.stringify({ version: 3, sources: ['../src/a.ts'], names: [], mappings: ';KAEA,CAAC' }));
    return pathToFileURL(join(folder, name)).href;
  };
  const source = () => join(folder, '..', 'src', 'a.ts');

  it('are those in the source, in each line that has one', () => {
    const file = fileWithMap('b (c).js');
    const stack = `Error: at ${file}, ${file}:2\n    at run (${file}:2:6)\n    at async ${file}:2:40\n    at node:internal/a:2:6`;
    expect(withSourcePositions(stack, file)).toBe(
      `Error: at ${file}, ${file}:2\n    at run (${source()}:3:1)\n    at async ${source()}:3:2\n    at node:internal/a:2:6`,
    );
  });

  it.each([
    ['before the first position of its line that has a source', ':2:2'],
    ['in a line without a source', ':3:6'],
  ])('stay as they are %s', (_, position) => {
    const file = fileWithMap('b.js');
    const stack = `Error\n    at run (${file}${position})`;
    expect(withSourcePositions(stack, file)).toBe(stack);
  });

  it('stay as they are in a file without a map', () => {
    const file = pathToFileURL(join(folder, 'none.js')).href;
    expect(withSourcePositions(`Error\n    at ${file}:2:6`, file)).toBe(`Error\n    at ${file}:2:6`);
  });

  it('are not expected in a stack that is not a text', () => {
    expect(withSourcePositions([1])).toEqual([1]);
  });

  it.each(['file:///%', 'https://example.com/a', 'node:internal/a'])('stay as they are in other files: %s', (url) => {
    const stack = `Error: ${fileWithMap('other.js')}:2:6\n    at ${url}:2:6`;
    expect(withSourcePositions(stack, fileWithMap('b.js'))).toBe(stack);
  });
});
