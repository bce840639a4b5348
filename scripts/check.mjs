// npm run check [-- reading|building]: runs the scripts check:… of package.json, or only those that read the files, or those that build `dist` first. Each
// prints its output when it has ended; one that fails does not prevent the others.
import { readFileSync } from 'node:fs';
import { inRoot, ROOT } from './shell/paths.mjs';
import { run } from './shell/run.mjs';

/** The checks of a kind run in two sequences at a time, for two cores. Those that write `dist` follow each other. */
const CHECKS = {
  reading: [
    ['types', 'imports', 'unused', 'language'],
    ['lint', 'format'],
  ],
  building: [['openapi', 'configuration', 'metrics', 'k8s']],
};

const known = Object.values(CHECKS).flat(2);
const scripts = Object.keys(JSON.parse(readFileSync(inRoot('package.json'), 'utf8')).scripts);
const unknown = scripts.filter((script) => script.startsWith('check:') && !known.includes(script.slice('check:'.length)));
if (unknown.length > 0) throw new Error(`scripts/check.mjs does not run ${unknown.join(', ')}`);

const [kind] = process.argv.slice(2);
const chosen = kind === undefined ? Object.values(CHECKS) : [CHECKS[/** @type {keyof typeof CHECKS} */ (kind)]];
if (chosen.includes(/** @type {any} */ (undefined))) throw new Error(`npm run check -- ${Object.keys(CHECKS).join('|')}`);

const failed = /** @type {string[]} */ ([]);
for (const sequences of chosen) await Promise.all(sequences.map(inOrder));
if (failed.length > 0) {
  console.error(`These checks failed: ${failed.join(', ')}`);
  process.exitCode = 1;
}

/** @param {string[]} checks */
async function inOrder(checks) {
  for (const check of checks) {
    const begunAt = performance.now();
    const { code, output } = await run('npm', ['run', '--silent', `check:${check}`], { cwd: ROOT });
    if (code !== 0) failed.push(check);
    console.log(`check:${check} ${code === 0 ? 'passed' : 'failed'} in ${Math.round((performance.now() - begunAt) / 1000)} s\n${output}`);
  }
}
