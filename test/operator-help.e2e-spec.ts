import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { inRoot } from '../scripts/shell/paths.mjs';
import { userEnvironment } from './support/document-shell.js';
import { needing } from './support/target.js';

needing('processes').describe('operators’ commands', () => {
  const env = { ...userEnvironment(), SLUICE_DATA_DIR: '/nowhere' };

  it.each(['account', 'account create', 'key', 'registry', 'component run', 'migrate', 'secrets rotate', 'kafka acls', 'dead-letters'])(
    'have help that needs no running system, and changes nothing: %s',
    async (command) => {
      const words = ['admin', ...command.split(' '), '--help'];
      const { stdout } = await promisify(execFile)(process.execPath, [inRoot('scripts', 'sluice.mjs'), ...words], { env });
      expect(stdout).toMatch(/^Usage: (npx )?sluice/);
    },
  );

  it.each([
    'migrate bogus',
    'secrets rotate bogus',
    'secrets bogus',
    'kafka bogus',
    'kafka acls bogus',
    'account create --email bogus',
    'account error-mail u_1 bogus',
    'kafka acls --bogus',
    'dead-letters bogus',
    'dead-letters --since soon',
    'registry add bogus.mjs',
    'component check bogus.mjs',
    'component run bogus.mjs',
    'component check .',
  ])('exit with 2 if their arguments are wrong: %s', (command) => {
    const words = ['admin', ...command.split(' ')];
    const stores = { DATABASE_URL: 'postgres://localhost:9/postgres', KAFKA_BROKERS: 'localhost:9' };
    const { status, stderr } = spawnSync(process.execPath, [inRoot('scripts', 'sluice.mjs'), ...words], {
      env: { ...env, ...stores },
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: expect.stringMatching(/bogus|too many arguments|--since must be|cannot be read: EISDIR/),
    });
  });
});
