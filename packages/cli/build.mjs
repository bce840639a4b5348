// Bundles the command line into one file, dist/sluice.mjs.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

await build({
  absWorkingDir: import.meta.dirname,
  entryPoints: ['src/main.ts'],
  outfile: 'dist/sluice.mjs',
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node22',
  conditions: ['sluice-source'],
  define: { SLUICE_TYPES: JSON.stringify(readFileSync(join(import.meta.dirname, 'types', 'sluice-env.d.ts'), 'utf8')) },
  // a program for another machine, which is only needed for components of several files
  external: ['esbuild'],
  banner: {
    js: "#!/usr/bin/env node\nimport { createRequire as __createRequire } from 'node:module';\nconst require = __createRequire(import.meta.url);",
  },
  legalComments: 'none',
  logLevel: 'warning',
});
