import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { type ComponentFile, readComponent } from './component-file.js';
import { versionsOf } from './versions-of.js';

let folder: string;
const path = (name: string): string => join(folder, name);
const save = (name: string, code: string): void => writeFileSync(path(name), code);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'versions-'));
  save('main.mjs', 'first');
  save('part.mjs', 'part');
});
afterEach(() => rmSync(folder, { recursive: true }));

/** The code of this many versions. `read` reads the component; `use` is called with the code of each version. */
async function versions(count: number, read: () => Promise<ComponentFile>, use: (code: string) => void = () => {}): Promise<string[]> {
  const codes: string[] = [];
  for await (const { code } of versionsOf(path('main.mjs'), read)) {
    use(code);
    if (codes.push(code) === count) break;
  }
  return codes;
}

it('notices a save while the file is read', async () => {
  const read = async (): Promise<ComponentFile> => {
    const component = await readComponent(path('main.mjs'));
    if (component.code === 'first') save('main.mjs', 'second');
    return component;
  };
  expect(await versions(2, read)).toEqual(['first', 'second']);
});

it('notices a save while a version is used', async () => {
  const read = (): Promise<ComponentFile> => readComponent(path('main.mjs'));
  expect(await versions(2, read, (code) => code === 'first' && save('main.mjs', 'second'))).toEqual(['first', 'second']);
});

it('notices a save in a folder that has replaced that of the file', async () => {
  const before = `${folder}-before`;
  const replace = (code: string): void => {
    if (code !== 'first') return save('main.mjs', 'third');
    renameSync(folder, before);
    cpSync(before, folder, { recursive: true });
    save('main.mjs', 'second');
  };
  try {
    expect(await versions(3, () => readComponent(path('main.mjs')), replace)).toEqual(['first', 'second', 'third']);
  } finally {
    rmSync(before, { recursive: true });
  }
});

it('notices a save in a folder that was deleted and created again', async () => {
  let isDeleted = false;
  const read = (): Promise<ComponentFile> => {
    if (isDeleted) {
      mkdirSync(folder);
      save('main.mjs', 'second');
    }
    isDeleted = false;
    return readComponent(path('main.mjs'));
  };
  const remove = (code: string): void => {
    if (code !== 'first') return save('main.mjs', 'third');
    rmSync(folder, { recursive: true });
    isDeleted = true;
  };
  expect(await versions(3, read, remove)).toEqual(['first', 'second', 'third']);
});

it('notices a change of a file that a version imports, also while it is read for the first time', async () => {
  let reads = 0;
  const read = async (): Promise<ComponentFile> => {
    const component = { ...(await readComponent(path('part.mjs'))), files: [path('main.mjs'), path('part.mjs')] };
    if (++reads === 1) save('part.mjs', 'changed');
    return component;
  };
  expect(await versions(2, read, (code) => code === 'changed' && save('part.mjs', 'changed again'))).toEqual(['changed', 'changed again']);
});
