import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { inRoot } from '../scripts/shell/paths.mjs';
import { userEnvironment } from './support/document-shell.js';
import { needing } from './support/target.js';

needing('processes').describe('the help of operators’ commands', () => {
  const env = { ...userEnvironment(), SLUICE_DATA_DIR: '/nowhere' };

  it.each(['account', 'account create', 'key', 'registry', 'component run', 'migrate', 'secrets rotate', 'kafka acls', 'dead-letters'])(
    'needs no running system, and changes nothing: %s',
    async (command) => {
      const words = ['admin', ...command.split(' '), '--help'];
      const { stdout } = await promisify(execFile)(process.execPath, [inRoot('scripts', 'sluice.mjs'), ...words], { env });
      expect(stdout).toMatch(/^Usage: (npx )?sluice/);
    },
  );
});
