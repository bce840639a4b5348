import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { SOURCE_MAPS } from '../scripts/processes/apps.mjs';
import { APPS, bundleOf, COMPILED } from '../scripts/setup/bundles.mjs';
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

  it.each(APPS)('has been compiled by the build: %s', (app) => {
    const env = { NODE_COMPILE_CACHE: COMPILED, NODE_DEBUG_NATIVE: 'COMPILE_CACHE' };
    const { stderr } = spawnSync(node24(), [bundleOf(app)], { env, encoding: 'utf8' });
    expect(stderr).toContain(`code cache for ESM ${pathToFileURL(bundleOf(app)).href} was accepted`);
  });

  it('names the lines of its sources in the stacks of errors', () => {
    const showing = join(folder, 'showing.cjs');
    writeFileSync(showing, `process.on('exit', () => console.log(new Error('the end').stack));`);
    const { stdout } = spawnSync(node24(), ['--require', showing, ...SOURCE_MAPS, bundleOf('catalog')], { env: {}, encoding: 'utf8' });
    const source = inRoot('libs', 'service', 'src', 'run-service.ts');
    const [, line, column] = new RegExp(`^    at die \\(${source}:(\\d+):(\\d+)\\)$`, 'm').exec(stdout) ?? [];
    const lines = readFileSync(source, 'utf8').split('\n');
    expect(lines.at(Number(line) - 1)?.slice(Number(column) - 1)).toBe('exit(1);');
  });
});
