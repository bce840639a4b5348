import { type ChildProcess, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { inRoot } from '../scripts/shell/paths.mjs';
import { readPidFile } from '../scripts/pid-files/pid-file.mjs';
import { freePort } from '../scripts/shell/ports.mjs';
import { userEnvironment } from './support/document-shell.js';
import { eventually } from './support/eventually.js';
import { npmStart } from './support/npm-start.js';
import { needing } from './support/target.js';

needing('processes').describe('a start that is refused', () => {
  let base: string;
  let taken: Server;
  let takenPort: string;
  beforeAll(async () => {
    base = mkdtempSync(join(tmpdir(), 'sluice-refused-'));
    takenPort = String(await freePort());
    taken = createServer();
    await new Promise<void>((done) => taken.listen(Number(takenPort), '127.0.0.1', done));
  });
  afterAll(() => {
    taken.close();
    rmSync(base, { recursive: true });
  });

  /** npm start with these variables, which refuse it. */
  async function start(
    variables: Record<string, string>,
    meanwhile: (launcher: ChildProcess) => Promise<void> = async () => {},
  ): Promise<{ code: number | null; output: string }> {
    const { launcher, output } = await npmStart({ SLUICE_DATA_DIR: join(base, 'new', 'data'), ...variables });
    const ended = new Promise<number | null>((resolve, reject) => launcher.once('error', reject).once('close', resolve));
    await meanwhile(launcher);
    return { code: await ended, output: output() };
  }

  it.each<[string, () => Record<string, string>, string]>([
    ['a bad variable of npm start', () => ({ SLUICE_HOST: 'everywhere' }), 'SLUICE_HOST must be an IP address'],
    ['a bad variable of a service', () => ({ SLUICE_MAX_RUN_SECONDS: 'soon' }), 'SLUICE_MAX_RUN_SECONDS must be a whole number'],
    ['a port in use', () => ({ SLUICE_HTTP_PORT: takenPort }), 'is taken by another program: set another one in SLUICE_HTTP_PORT'],
    ['no safe jail', () => ({ RUNNER_JAIL: 'none' }), 'No jail for components works on this machine'],
  ])('reports the cause and creates no data folder: %s', async (_, variables, message) => {
    expect(await start(variables())).toEqual({ code: 1, output: expect.stringContaining(message) });
    expect(readdirSync(base)).toEqual([]);
  });

  it('names a misspelt variable that may be the reason', async () => {
    const { output } = await start({ SLUICE_HTTP_PORT: takenPort, SLUICE_HTTP_PROT: '3005' });
    expect(output).toMatch(/did you mean SLUICE_HTTP_PORT\?[^]*set another one in SLUICE_HTTP_PORT/);
  });

  it('keeps a data folder that existed', async () => {
    const dir = join(base, 'existing');
    mkdirSync(dir);
    writeFileSync(join(dir, 'api-key'), 'slk_kept');
    expect(await start({ SLUICE_DATA_DIR: dir, RUNNER_JAIL: 'none' })).toMatchObject({ code: 1 });
    expect(readdirSync(dir)).toContain('api-key');
    rmSync(dir, { recursive: true });
  });

  it.each([
    ['postgres', 'base', 'PG_VERSION'],
    ['broker', 'events-0', 'meta.properties'],
  ])('names a file that the data of %s has lost, and leaves the others as they are', async (store, other, lost) => {
    const dir = join(base, 'damaged');
    mkdirSync(join(dir, store, 'data', other), { recursive: true });
    writeFileSync(join(dir, store, 'password'), 'kept');
    const { code, output } = await start({ SLUICE_DATA_DIR: dir });
    expect({ code, output }).toEqual({ code: 1, output: expect.stringContaining(`${join(dir, store, 'data', lost)} is missing`) });
    expect(output).not.toContain('    at ');
    expect(readdirSync(join(dir, store))).toEqual(['data', 'password']);
    expect(readdirSync(join(dir, store, 'data'))).toEqual([other]);
    expect(readFileSync(join(dir, store, 'password'), 'utf8')).toBe('kept');
    rmSync(dir, { recursive: true });
  });

  it('ends at Ctrl-C while its broker hangs', async () => {
    const dir = join(base, 'stopped');
    const { code } = await start({ SLUICE_DATA_DIR: dir }, async (launcher) => {
      const broker = await eventually(() => readPidFile(join(dir, 'broker', 'broker.pid')) ?? Promise.reject(new Error('no broker yet')), {
        withinMs: 60_000,
      });
      process.kill(broker.pid, 'SIGSTOP');
      launcher.kill('SIGINT');
    });
    expect(code).toBe(0);
    expect(readdirSync(dir)).not.toContain('lock');
    rmSync(dir, { recursive: true });
  });
});

needing('processes').describe('sluice secrets init', () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'sluice-secrets-'));
  });
  afterEach(() => rmSync(dir, { recursive: true }));
  const init = (variables: Record<string, string> = {}, ...names: string[]) =>
    spawnSync(process.execPath, [inRoot('scripts', 'init-secrets.mjs'), dir, ...names], {
      env: { ...userEnvironment(), ...variables },
      encoding: 'utf8',
    });
  const kept = (name: string): string => readFileSync(join(dir, name), 'utf8').trim();

  it('creates the secrets that are named, and shows only the password of PostgreSQL to the group', () => {
    expect(init({}, 'secrets-key').status).toBe(0);
    expect(readdirSync(dir)).toEqual(['secrets-key']);
    expect(init().status).toBe(0);
    const modes = readdirSync(dir).map((name) => [name, statSync(join(dir, name)).mode & 0o777]);
    expect(Object.fromEntries(modes)).toEqual({ 'postgres-password': 0o440, 'api-key': 0o400, 'secrets-key': 0o400 });
    expect(init({}, 'passwords').status).toBe(2);
  });

  it('replaces the key that encrypts secrets only by a list that contains it', () => {
    expect(init().status).toBe(0);
    const [first, other] = [kept('secrets-key'), 'b'.repeat(64)];
    for (const [key, sentence] of [
      ['typo', 'SLUICE_SECRETS_KEY must be 32 bytes'],
      [other, `SLUICE_SECRETS_KEY lacks the key in ${join(dir, 'secrets-key')}`],
    ] as const) {
      const { status, stderr } = init({ SLUICE_SECRETS_KEY: key });
      expect({ status, stderr, kept: kept('secrets-key') }).toEqual({ status: 1, stderr: expect.stringContaining(sentence), kept: first });
    }
    for (const key of [`${first},${other}`, `${other},${first}`, other]) {
      expect(init({ SLUICE_SECRETS_KEY: key }).status).toBe(0);
      expect(kept('secrets-key')).toBe(key);
    }
  });

  it('writes nothing if a variable has a bad value', () => {
    const { status, stderr } = init({ SLUICE_API_KEY: 'short', POSTGRES_PASSWORD: 'given' });
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining('SLUICE_API_KEY must be 8 to 128 visible ASCII') });
    expect(init({ SLUICE_SECRETS_KEY: 'typo' }).status).toBe(1);
    expect(readdirSync(dir)).toEqual([]);
  });

  it('takes SLUICE_API_KEY for a new installation, and never replaces the key of another one by it', () => {
    expect(init({ SLUICE_API_KEY: 'chosen-by-the-operator' }).status).toBe(0);
    const { stdout, status } = init({ SLUICE_API_KEY: 'key-of-another-installation' });
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining('SLUICE_API_KEY is ignored') });
    expect(kept('api-key')).toBe('chosen-by-the-operator');
  });

  it('keeps the generated password beside one that replaces it', () => {
    init();
    const generated = kept('postgres-password');
    for (const password of ['given', 'given-later']) {
      expect(init({ POSTGRES_PASSWORD: password }).status).toBe(0);
      expect(kept('postgres-password')).toBe(password);
      expect(kept('postgres-password.first')).toBe(generated);
    }
  });
});
