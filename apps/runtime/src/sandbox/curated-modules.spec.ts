import { expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { curatedModules } from './curated-modules.js';

const read = (file: string) => JSON.parse(readFileSync(new URL(`../../../../${file}`, import.meta.url), 'utf8'));

it('offers exactly the packages that component-packages/package.json pins to one version, beside npm itself', () => {
  const { dependencies } = read('component-packages/package.json');
  expect(Object.keys(dependencies).sort()).toEqual([...curatedModules, 'npm'].sort());
  expect(Object.values(dependencies).filter((version) => !/^\d+\.\d+\.\d+$/.test(version as string))).toEqual([]);
});

it.each(['package-lock.json', 'component-packages/package-lock.json'])('names no host of a registry in %s', (file) => {
  const { packages } = read(file) as { packages: Record<string, { resolved?: string; link?: boolean }> };
  // the packages in this repository are links to their folders
  const downloaded = Object.values(packages).filter(({ link }) => link !== true);
  expect(downloaded.flatMap(({ resolved }) => resolved ?? [])).toEqual([]);
});
