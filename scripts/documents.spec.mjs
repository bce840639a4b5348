import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, it } from '@jest/globals';
import { inRoot, ROOT } from './shell/paths.mjs';

it('every relative link in a document leads to a file', () => {
  const documents = execFileSync('git', ['ls-files', '*.md'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
  const broken = documents.flatMap((document) =>
    [...readFileSync(inRoot(document), 'utf8').matchAll(/\]\(([^)#\s]+)[^)]*\)/g)]
      .map(([, link = '']) => link)
      .filter((link) => !/^\w+:/.test(link) && !existsSync(inRoot(dirname(document), link)))
      .map((link) => `${document}: ${link}`),
  );
  expect(broken).toEqual([]);
});
