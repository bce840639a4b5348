// node scripts/build-jail-root.mjs DIR: builds the jail's root for components below DIR, while the container image is built. RUNNER_JAIL_ROOTS=DIR makes
// the runtime use it. Needs of dist/ the sandbox only.
import { mkdir } from 'node:fs/promises';
import { curatedModules } from '../dist/apps/runtime/src/sandbox/curated-modules.js';
import { buildJailRoot } from '../dist/apps/runtime/src/sandbox/jail/jail-root.js';

const dir = process.argv[2];
if (!dir) throw new Error('Usage: node scripts/build-jail-root.mjs DIR');
await mkdir(dir, { recursive: true });
console.log((await buildJailRoot(dir, curatedModules)).dir);
