import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { APPS, bundleOf } from '../scripts/setup/bundles.mjs';
import { node24 } from '../scripts/setup/node24.mjs';
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
});
