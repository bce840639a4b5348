// node scripts/build-jail-root.mjs DIR: builds the root directory of the components' jail below DIR while the image is built. RUNNER_JAIL_ROOTS=DIR makes
// the runtime use it. Needs only the sandbox from dist/.
import { curatedModules } from '../dist/apps/runtime/src/sandbox/curated-modules.js';
import { buildJailRoot } from '../dist/apps/runtime/src/sandbox/jail/jail-root.js';

const dir = process.argv[2];
if (!dir) throw new Error('Usage: node scripts/build-jail-root.mjs DIR');
console.log((await buildJailRoot(dir, curatedModules)).dir);
