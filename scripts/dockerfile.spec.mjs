import { expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { inRoot } from './shell/paths.mjs';

const read = (/** @type {string[]} */ ...file) => readFileSync(inRoot(...file), 'utf8');
const stages = read('Dockerfile').split(/^FROM /m);
/** The files and folders of scripts/ in the last stage. */
const copied = [...(stages.at(-1) ?? '').matchAll(/^COPY (scripts.*) \S+$/gm)].flatMap(([, files = '']) => files.split(' '));

it('copies the scripts into the image that its commands and the manifests run', () => {
  const used = [read('docker', 'sluice.sh'), read('k8s', 'install.yaml')].flatMap((text) => text.match(/scripts\/[\w-]+\.mjs/g) ?? []);
  expect(used).toContain('scripts/k8s-secrets.mjs');
  expect(copied).toEqual(expect.arrayContaining(used));
});

it('copies everything into the image that its scripts import', () => {
  const files = new Set(copied.filter((file) => file.endsWith('.mjs')));
  for (const file of files)
    for (const [, path = ''] of read(file).matchAll(/(?:from|import) '(\.[^']+\.mjs)'/g)) files.add(join(dirname(file), path));
  expect([...files].filter((file) => !copied.includes(file) && !copied.includes(dirname(file)))).toEqual([]);
});
