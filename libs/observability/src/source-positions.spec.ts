import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
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
    const file = fileWithMap('b c.js');
    const stack = `Error: at (file)\n    at run (${file}:2:6)\n    at async ${file}:2:40\n    at node:internal/a:2:6`;
    expect(withSourcePositions(stack)).toBe(
      `Error: at (file)\n    at run (${source()}:3:1)\n    at async ${source()}:3:2\n    at node:internal/a:2:6`,
    );
  });

  it.each([
    ['before the first position of its line that has a source', ':2:2'],
    ['in a line without a source', ':3:6'],
  ])('stay as they are %s', (_, position) => {
    const stack = `Error\n    at run (${fileWithMap('b.js')}${position})`;
    expect(withSourcePositions(stack)).toBe(stack);
  });

  it('stay as they are in files without a map, in packages, and outside files', () => {
    mkdirSync(join(folder, 'node_modules'));
    for (const url of [pathToFileURL(join(folder, 'no.js')).href, fileWithMap('node_modules/p.js'), 'file:///%', 'https://example.com/a']) {
      expect(withSourcePositions(`Error\n    at ${url}:2:6`)).toBe(`Error\n    at ${url}:2:6`);
    }
  });
});
