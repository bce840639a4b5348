// Bundles the command line into one file, dist/sluice.mjs, beside the licences of the packages that it contains.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const root = import.meta.dirname;

const { metafile } = await build({
  absWorkingDir: root,
  metafile: true,
  entryPoints: ['src/main.ts'],
  outfile: 'dist/sluice.mjs',
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node22',
  conditions: ['sluice-source'],
  define: { SLUICE_TYPES: JSON.stringify(readFileSync(join(root, 'types', 'sluice-env.d.ts'), 'utf8')) },
  // a program for another machine, which is only needed for components of several files
  external: ['esbuild'],
  banner: {
    js: "#!/usr/bin/env node\nimport { createRequire as __createRequire } from 'node:module';\nconst require = __createRequire(import.meta.url);",
  },
  legalComments: 'none',
  logLevel: 'warning',
});

const folders = Object.keys(metafile.inputs).flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []);
const licences = [...new Set(folders)].map((folder) => {
  const file = readdirSync(join(root, folder)).find((name) => /^licen[cs]e/i.test(name));
  if (file === undefined) throw new Error(`${folder} has no licence`);
  return `${folder.split('node_modules/').at(-1)}\n\n${readFileSync(join(root, folder, file), 'utf8').trim()}\n`;
});
writeFileSync(join(root, 'dist', 'LICENSES.txt'), licences.join('\n---\n\n'));
