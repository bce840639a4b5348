// Bundles the command line into one file, dist/sluice.mjs, beside the licences of the packages that it contains.
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { writeWhole } from '../../scripts/shell/whole-file.mjs';

const root = import.meta.dirname;

const { metafile, outputFiles } = await build({
  write: false,
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

mkdirSync(join(root, 'dist'), { recursive: true });
/**
 * Another command may be reading the file, or building it at the same time.
 * @param {string} name
 * @param {string | Uint8Array} content
 */
const write = (name, content) => writeWhole(join(root, 'dist', name), content, { mode: 0o644 });
write('LICENSES.txt', licences.join('\n---\n\n'));
// last: it is what shows that the build is complete
write('sluice.mjs', outputFiles[0].contents);
