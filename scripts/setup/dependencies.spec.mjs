import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { inRoot } from '../shell/paths.mjs';
import { ensureInstalled } from './dependencies.mjs';

const VARIABLES = ['NODE_ENV', 'npm_config_omit'];

/** @type {string} */
let folder;
/** @type {(string | undefined)[]} */
let before;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-dependencies-'));
  before = VARIABLES.map((name) => process.env[name]);
});
afterEach(() => {
  for (const [index, name] of VARIABLES.entries()) setVariable(name, before[index]);
  rmSync(folder, { recursive: true });
});

/** @param {string} name @param {string | undefined} value */
function setVariable(name, value) {
  if (value === undefined) delete process.env[name];
  else process.env[name] = value;
}

/** A package with a local dependency of each kind, so that npm needs no registry. */
function writePackage() {
  const kinds = { dependencies: 'a', devDependencies: 'b', optionalDependencies: 'c' };
  const root = Object.fromEntries(Object.entries(kinds).map(([kind, name]) => [kind, { [name]: `file:local/${name}` }]));
  /** @type {Record<string, object>} */
  const packages = { '': { name: 'root', ...root } };
  for (const [kind, name] of Object.entries(kinds)) {
    const marks = { devDependencies: { dev: true }, optionalDependencies: { optional: true } }[kind];
    packages[`local/${name}`] = { version: '1.0.0', ...marks };
    packages[`node_modules/${name}`] = { resolved: `local/${name}`, link: true, ...marks };
    mkdirSync(join(folder, 'local', name), { recursive: true });
    writeFileSync(join(folder, 'local', name, 'package.json'), JSON.stringify({ name, version: '1.0.0' }));
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'root', ...root }));
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ name: 'root', lockfileVersion: 3, requires: true, packages }));
}

it.each([{ NODE_ENV: 'production' }, { npm_config_omit: 'dev' }, { npm_config_omit: 'optional' }])(
  'installs the packages of every kind with %o',
  async (variables) => {
    writePackage();
    for (const [name, value] of Object.entries(variables)) setVariable(name, value);
    await ensureInstalled({ folder, name: 'packages', size: 'nothing' }, () => {});
    expect(['a', 'b', 'c'].filter((name) => !existsSync(join(folder, 'node_modules', name)))).toEqual([]);
  },
);

/** Fails at once for the services, and takes longer for the components. */
const NPM = `#!${process.execPath}
const { writeFileSync } = require('node:fs');
if (process.cwd().endsWith('component-packages')) setTimeout(() => writeFileSync('ended', ''), 1000);
else process.exitCode = 1;
`;

it('fails only when no npm writes any more, so that another command does not begin too early', () => {
  for (const name of ['setup', 'shell', 'pid-files']) cpSync(inRoot('scripts', name), join(folder, 'scripts', name), { recursive: true });
  for (const name of ['.', 'component-packages', 'bin']) mkdirSync(join(folder, name), { recursive: true });
  for (const name of ['.', 'component-packages']) writeFileSync(join(folder, name, 'package-lock.json'), '{}');
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(folder, 'tsconfig.build.json'), '{}');
  writeFileSync(join(folder, 'bin', 'npm'), NPM, { mode: 0o755 });
  writeFileSync(join(folder, 'bin', 'package.json'), '{ "type": "commonjs" }');
  const program = `
    import { existsSync } from 'node:fs';
    import { ensureDependencies } from '${folder}/scripts/setup/dependencies.mjs';
    await ensureDependencies({ say: () => {} }).catch(({ message }) => console.log(existsSync('component-packages/ended'), message));`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: folder,
    env: { ...process.env, PATH: `${join(folder, 'bin')}${delimiter}${process.env.PATH}` },
    encoding: 'utf8',
  });
  expect(stdout).toMatch(/^true [^]*npm ci failed/);
});
