import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { writePidFile } from '../pid-files/pid-file.mjs';
import { inRoot } from '../shell/paths.mjs';

/** Appends whether it has records of its last run, and fails as if it had been interrupted. */
const COMPILER = `
import { appendFileSync, existsSync } from 'node:fs';
appendFileSync('runs', existsSync('dist/build.tsbuildinfo') ? 'with records\\n' : 'from scratch\\n');
process.kill(process.pid, 'SIGTERM');
`;

/** Ends when the test allows it. */
const SLOW_COMPILER = `
import { appendFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
appendFileSync('runs', 'begun\\n');
while (!existsSync('may-end')) await new Promise((resolve) => setTimeout(resolve, 20));
for (const app of ['gateway', 'catalog', 'routing', 'event-store', 'runtime'])
  for (const file of ['main', 'cli'].map((name) => \`dist/apps/\${app}/src/\${name}.js\`)) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, 'console.log(1);');
  }
`;

describe('the build', () => {
  /** @type {string} */
  let root;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'sluice-build-'));
    for (const folder of ['setup', 'shell', 'pid-files'])
      cpSync(inRoot('scripts', folder), join(root, 'scripts', folder), { recursive: true });
    for (const file of ['package.json', 'package-lock.json', 'tsconfig.build.json'])
      writeFileSync(join(root, file), '{ "type": "module" }');
    const compiler = join(root, 'node_modules', 'typescript-native', 'bin');
    mkdirSync(compiler, { recursive: true });
    writeCompiler(COMPILER);
    writeFileSync(join(root, 'node_modules', 'typescript-native', 'package.json'), '{ "type": "module" }');
    symlinkSync(inRoot('node_modules', 'esbuild'), join(root, 'node_modules', 'esbuild'));
  });
  afterEach(() => rmSync(root, { recursive: true }));

  /** @param {string} program */
  const writeCompiler = (program) => writeFileSync(join(root, 'node_modules', 'typescript-native', 'bin', 'tsc'), program);
  /** @param {string} body */
  const inCopy = (body) => spawnSync(process.execPath, ['--input-type=module', '-e', body], { cwd: root, encoding: 'utf8' });
  const program = () => `import { ensureBuild } from '${root}/scripts/setup/build.mjs'; await ensureBuild();`;
  const build = () => inCopy(program());

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

  it('is done once for two commands, of which the second waits for the first, but not for one that was killed', async () => {
    writeCompiler(SLOW_COMPILER);
    writeFileSync(join(root, 'scripts', 'migrate.mjs'), '');
    const claims = join(root, '.cache', 'claims');
    mkdirSync(claims, { recursive: true });
    writePidFile(join(claims, '1073741824'), 2 ** 30);
    const start = () => {
      const command = spawn(process.execPath, ['--input-type=module', '-e', program()], {
        cwd: root,
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      return { exited: once(command, 'exit'), lines: createInterface(command.stdout) };
    };

    const first = start();
    expect((await once(first.lines, 'line'))[0]).toContain('building the services');
    const second = start();
    expect((await once(second.lines, 'line'))[0]).toContain('waiting for another command');
    writeFileSync(join(root, 'may-end'), '');
    expect([(await first.exited)[0], (await second.exited)[0]]).toEqual([0, 0]);
    expect(readFileSync(join(root, 'runs'), 'utf8')).toBe('begun\n');
    expect(readdirSync(claims)).toEqual([]);
  });

  it('does not wait for a command in a container, and keeps its claim, for which other commands there wait', () => {
    const claims = join(root, '.cache', 'claims');
    mkdirSync(claims, { recursive: true });
    writeFileSync(join(claims, '7-1234'), JSON.stringify({ pid: 7, identity: 'boot/1', namespace: 'pid:[1]' }));
    const result = inCopy(`
      import { inTurn } from '${root}/scripts/setup/in-turn.mjs';
      await inTurn(console.log, async () => console.log('done'));`);
    expect(result).toMatchObject({ stderr: '', stdout: 'done\n' });
    expect(readdirSync(claims)).toEqual(['7-1234']);
  });
});
