import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inRoot } from '../shell/paths.mjs';

/** Appends whether it has records of its last run, and fails as if it had been interrupted. */
const COMPILER = `
import { appendFileSync, existsSync } from 'node:fs';
appendFileSync('runs', existsSync('dist/build.tsbuildinfo') ? 'with records\\n' : 'from scratch\\n');
process.kill(process.pid, 'SIGTERM');
`;

describe('the build', () => {
  /** @type {string} */
  let root;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'sluice-build-'));
    for (const folder of ['setup', 'shell']) cpSync(inRoot('scripts', folder), join(root, 'scripts', folder), { recursive: true });
    for (const file of ['package.json', 'package-lock.json', 'tsconfig.build.json'])
      writeFileSync(join(root, file), '{ "type": "module" }');
    const compiler = join(root, 'node_modules', 'typescript-native', 'bin');
    mkdirSync(compiler, { recursive: true });
    writeFileSync(join(compiler, 'tsc'), COMPILER);
    writeFileSync(join(root, 'node_modules', 'typescript-native', 'package.json'), '{ "type": "module" }');
  });
  afterEach(() => rmSync(root, { recursive: true }));

  /** @param {string} body */
  const inCopy = (body) => spawnSync(process.execPath, ['--input-type=module', '-e', body], { cwd: root, encoding: 'utf8' });
  const build = () => inCopy(`import { ensureBuild } from '${root}/scripts/setup/build.mjs'; await ensureBuild();`);

  it('begins from scratch after the compiler was interrupted, because its records do not match the files that it had written by then', () => {
    // the end of an earlier build
    inCopy(`
      import { mkdirSync, writeFileSync } from 'node:fs';
      import { bundles } from '${root}/scripts/setup/bundles.mjs';
      mkdirSync('dist/bundles', { recursive: true });
      for (const file of [...bundles(), 'dist/build.tsbuildinfo']) writeFileSync(file, '');
      writeFileSync('dist/.build-stamp.json', JSON.stringify({ state: 'earlier', files: [] }));`);
    for (let n = 0; n < 2; n++) expect(build().stderr).toContain('The build failed');
    expect(readFileSync(join(root, 'runs'), 'utf8')).toBe('with records\nfrom scratch\n');
  });

  it('replaces the bundles as a whole, so that a command which is reading one reads it to its end', () => {
    symlinkSync(inRoot('node_modules', 'esbuild'), join(root, 'node_modules', 'esbuild'));
    const result = inCopy(`
      import { mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
      import { basename, dirname } from 'node:path';
      import { APPS, bundleApps, bundles } from '${root}/scripts/setup/bundles.mjs';
      const programs = APPS.flatMap((app) => [\`dist/apps/\${app}/src/main.js\`, \`dist/apps/\${app}/src/cli.js\`]);
      for (const file of [...programs, 'scripts/migrate.mjs', ...bundles()]) {
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, 'console.log(1);');
      }
      const former = openSync(bundles()[0], 'r');
      await bundleApps();
      console.log(readFileSync(former, 'utf8'), readFileSync(bundles()[0], 'utf8').length > 20);
      console.log(readdirSync('dist/bundles').sort().join() === bundles().flatMap((file) => [file, file + '.map']).map((file) => basename(file)).sort().join());`);
    expect(result).toMatchObject({ stderr: '', stdout: 'console.log(1); true\ntrue\n' });
  });
});
