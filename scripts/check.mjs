// npm run check: runs the scripts check:… of package.json. Each prints its output when it has ended; one that fails does not prevent the others.
import { readFileSync } from 'node:fs';
import { inRoot, ROOT } from './shell/paths.mjs';
import { run } from './shell/run.mjs';

/** Two sequences at a time, for two cores. Those of the second round that write `dist` follow each other, and wait for those of the first that read it. */
const ROUNDS = [
  [['types', 'imports', 'unused'], ['lint']],
  [
    ['openapi', 'configuration', 'metrics', 'k8s'],
    ['format', 'language'],
  ],
];

const known = ROUNDS.flat(2);
const scripts = Object.keys(JSON.parse(readFileSync(inRoot('package.json'), 'utf8')).scripts);
const unknown = scripts.filter((script) => script.startsWith('check:') && !known.includes(script.slice('check:'.length)));
if (unknown.length > 0) throw new Error(`scripts/check.mjs does not run ${unknown.join(', ')}`);

const failed = /** @type {string[]} */ ([]);
for (const round of ROUNDS) await Promise.all(round.map(inOrder));
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
