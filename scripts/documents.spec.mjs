import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
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

const backup = codeBlocks(readFileSync(inRoot('docs', 'operations', 'backup.md'), 'utf8'));
const loops = ['pg_dump', 'pg_restore', 'secret '].flatMap((command) =>
  backup.filter(({ text }) => /^ *for /m.test(text) && text.includes(command)).map(({ line, text }) => ({ line, command, text })),
);

it.each(loops)('the block in line $line of backup.md fails at the first `$command` that fails, and executes nothing after it', (loop) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-backup-'));
  const fake = `#!/bin/sh\necho "\${0##*/} $*" >> '${folder}/calls'\ncase "$0 $*" in *'${loop.command}'*) exit 3; esac\n`;
  for (const program of ['pg_dump', 'pg_restore', 'docker', 'kubectl']) writeFileSync(join(folder, program), fake, { mode: 0o755 });
  for (const file of ['gateway.dump', 'catalog.dump']) writeFileSync(join(folder, file), '');
  const variables = { HOME: folder, backup: folder, postgres: 'postgres-0', PATH: `${folder}:${process.env.PATH}` };
  try {
    const { status } = spawnSync('bash', ['-c', loop.text.replaceAll('<your folder>', 'folder')], { cwd: folder, env: variables });
    const calls = readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n');
    expect(status).toBe(1);
    expect(calls.filter((call) => `${call} `.includes(loop.command))).toEqual([calls.at(-1)]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
