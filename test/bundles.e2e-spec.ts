import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { APPS, bundleOf, bundles, COMPILED, commandOf } from '../scripts/setup/bundles.mjs';
import { node24 } from '../scripts/setup/node24.mjs';
import { inRoot } from '../scripts/shell/paths.mjs';
import { needing } from './support/target.js';

needing('processes').describe('the bundle of a service', () => {
  let folder: string;
  beforeAll(() => void (folder = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-bundles-')))));
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each(APPS)('holds the packages of %s, so that none is loaded a second time', (app) => {
    const [listing, list] = [join(folder, 'listing.cjs'), join(folder, `${app}.json`)];
    const loaded = `JSON.stringify(Object.keys(require('node:module')._cache))`;
    writeFileSync(listing, `process.on('exit', () => require('node:fs').writeFileSync(${JSON.stringify(list)}, ${loaded}));`);
    // without a configuration, the service ends as soon as its modules are loaded
    const { stdout } = spawnSync(node24(), ['--require', listing, bundleOf(app)], { env: {}, encoding: 'utf8' });
    expect(stdout).toContain('DATABASE_URL is required');
    expect(JSON.parse(readFileSync(list, 'utf8'))).toEqual([listing]);
  });

  it.each(['gateway-command', 'catalog-command', 'runtime-command', 'migrate'] as const)('is also built for the command %s', (command) => {
    expect(bundles()).toContain(commandOf(command));
    const { stdout, stderr } = spawnSync(node24(), [commandOf(command), '--help'], { env: {}, encoding: 'utf8' });
    expect(`${stdout}${stderr}`).toMatch(/Usage: |DATABASE_URL is required|has no arguments/);
  });

  it.each(APPS)('has been compiled by the build: %s', (app) => {
    const env = { NODE_COMPILE_CACHE: COMPILED, NODE_DEBUG_NATIVE: 'COMPILE_CACHE' };
    const { stderr } = spawnSync(node24(), [bundleOf(app)], { env, encoding: 'utf8' });
    expect(stderr).toContain(`code cache for ESM ${pathToFileURL(bundleOf(app)).href} was accepted`);
  });

  it.each(APPS)('does not load the certificates of all authorities before it connects with TLS: %s', (app) => {
    const listing = join(folder, 'built-in.cjs');
    writeFileSync(listing, `process.on('exit', () => console.error(process.moduleLoadList.join('\\n')));`);
    const { stderr } = spawnSync(node24(), ['--require', listing, bundleOf(app)], { env: {}, encoding: 'utf8' });
    expect(stderr).toContain('NativeModule http\n');
    expect(stderr).not.toContain('NativeModule tls\n');
  });

  it('logs errors with the lines of our sources', () => {
    const failing = join(folder, 'failing.cjs');
    writeFileSync(
      failing,
      `process.env = new Proxy(process.env, { get(env, name) { if (name === 'KAFKA_BROKERS') throw new Error('here'); return env[name]; } });`,
    );
    const { stdout } = spawnSync(node24(), ['--require', failing, bundleOf('catalog')], { env: {}, encoding: 'utf8' });
    const { err, msg } = JSON.parse(stdout) as { err: { stack: string }; msg: string };
    const frames = [...err.stack.matchAll(/^ {4}at (?:\S+\.)?(\S+) \((.+):(\d+):(\d+)\)$/gm)];
    const called = frames.map(([, name, file = '', line, column]) => {
      const code = file.startsWith(inRoot('libs')) ? readFileSync(file, 'utf8').split('\n') : [];
      return [name, code.at(Number(line) - 1)?.slice(Number(column) - 1)];
    });
    expect(msg).toBe('service.not-started');
    expect(called.slice(0, 5)).toEqual([
      ['get', undefined],
      ['problemOf', expect.stringContaining('env[variable.name]')],
      ['read', expect.stringContaining('problemOf(')],
      ['checkConfig', expect.stringContaining('flatMap(')],
      ['runService', 'checkConfig([...COMMON_SETTINGS, ...settings]);'],
    ]);
  });
});
