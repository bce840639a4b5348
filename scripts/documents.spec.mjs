import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, it } from '@jest/globals';
import { codeBlocks, SKIPPED } from './language/code-blocks.mjs';
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

const tutorials = readdirSync(inRoot('docs', 'tutorials')).map((name) => `docs/tutorials/${name}`);
const executed = ['README.md', ...tutorials, 'docs/reference/components.md'];

it('every shell block of the README, the tutorials and the reference of components is executed by test/documents.e2e-spec.ts, with few exceptions', () => {
  /** @type {Record<string, number>} */
  const skipped = {};
  const unknown = executed.flatMap((document) =>
    codeBlocks(readFileSync(inRoot(document), 'utf8')).flatMap(({ line, language, mark }) => {
      if (/^(bash|shell|console|zsh)$/.test(language)) return [`${document}:${line}: the language of a shell block is sh`];
      if (language !== 'sh' || ['', 'settings', 'install'].includes(mark)) return [];
      if (!Object.hasOwn(SKIPPED, mark)) return [`${document}:${line}: ${mark}`];
      skipped[mark] = (skipped[mark] ?? 0) + 1;
      return [];
    }),
  );
  expect(unknown).toEqual([]);
  // a block that nothing executes goes stale: this list should not grow
  expect(skipped).toEqual({ start: 2, docker: 1, kubernetes: 1, operator: 1 });
});

it('the index of the documents lists all of them', () => {
  const index = readFileSync(inRoot('docs', 'README.md'), 'utf8');
  const pages = ['tutorials', 'how-to', 'reference'].flatMap((folder) =>
    readdirSync(inRoot('docs', folder)).map((name) => `${folder}/${name}`),
  );
  expect(pages.filter((page) => !index.includes(`(${page})`))).toEqual([]);
});
