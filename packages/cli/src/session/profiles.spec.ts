import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { CliError, EXIT } from './errors.js';
import { findAccess, Profiles, serverUrl } from './profiles.js';

let folder: string;
let profiles: Profiles;
const HERE = { url: 'http://here:3000', key: 'slk_here' };
const THERE = { url: 'https://there', key: 'slk_there' };

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-profiles-'));
  profiles = new Profiles({ XDG_CONFIG_HOME: folder });
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('profiles', () => {
  it('are kept in a file that only the user can read; the last one saved is used', () => {
    profiles.save('here', HERE);
    profiles.save('there', THERE);
    expect(statSync(profiles.path).mode & 0o777).toBe(0o600);
    expect(profiles.read()).toEqual({ current: 'there', profiles: { here: HERE, there: THERE } });
    profiles.use('here');
    expect(findAccess({}, profiles)).toEqual({ ...HERE, from: 'the profile here' });
    profiles.delete('here');
    expect(profiles.read()).toEqual({ current: 'there', profiles: { there: THERE } });
    expect(() => profiles.use('here')).toThrow('there is no profile here; known are there');
  });

  it('are changed by one command at a time, each of which keeps the changes of the others', () => {
    profiles.save('here', HERE);
    const lock = `${profiles.path}.lock`;
    writeFileSync(lock, '');
    // another command, in the middle of a change
    const file = JSON.stringify({ current: 'there', profiles: { here: HERE, there: THERE } });
    spawn('sh', ['-c', 'sleep 0.2; echo "$FILE" > "$CONFIG"; rm "$CONFIG.lock"'], {
      env: { ...process.env, FILE: file, CONFIG: profiles.path },
    });
    profiles.save('third', HERE);
    expect(profiles.read()).toEqual({ current: 'third', profiles: { here: HERE, there: THERE, third: HERE } });
    expect(existsSync(lock)).toBe(false);
  });

  it('name the lock that a killed command has left, in an error', () => {
    profiles.save('here', HERE);
    writeFileSync(`${profiles.path}.lock`, '');
    const hasty = new Profiles({ XDG_CONFIG_HOME: folder }, 50);
    expect(() => hasty.use('here')).toThrow(`${profiles.path}.lock exists: another command changes the profiles; if none does, delete it`);
  });

  it.each([
    ...['{', 'null', '{}', '[]', '{"profiles": {}}', '{"current": 1, "profiles": {}}', '{"current": "here", "profiles": null}'],
    ...['{"current": "here", "profiles": {"here": {}}}', '{"current": "here", "profiles": {"here": null}}'],
  ])('report a file that contains %s', (text) => {
    profiles.save('here', HERE);
    writeFileSync(profiles.path, text);
    expect(() => profiles.read()).toThrow(
      new RegExp(`^${profiles.path} cannot be read: .+; correct it, or delete it and run \`sluice login\` again$`),
    );
  });

  it('do not show the key of a file that is not JSON', () => {
    profiles.save('here', HERE);
    writeFileSync(profiles.path, '{"current": "here", "profiles": {"here": {"key": slk_secret}}}');
    expect(() => profiles.read()).toThrow(`${profiles.path} cannot be read: it is not JSON; correct it`);
  });

  it('are refused in a file that is not UTF-8', () => {
    profiles.save('here', HERE);
    writeFileSync(profiles.path, Buffer.from('{"current": "h\xe9re", "profiles": {}}', 'latin1'));
    expect(() => profiles.read()).toThrow(`${profiles.path} cannot be read: it is not UTF-8; correct it`);
  });

  it('may begin with a byte order mark', () => {
    profiles.save('here', HERE);
    writeFileSync(profiles.path, `\ufeff${readFileSync(profiles.path, 'utf8')}`);
    expect(profiles.find().profile).toEqual(HERE);
  });

  it('are replaced as a whole: a write that ends in the middle loses none', () => {
    profiles.save('here', HERE);
    const before = join(folder, 'before');
    linkSync(profiles.path, before);
    profiles.save('there', THERE);
    expect(JSON.parse(readFileSync(before, 'utf8'))).toEqual({ current: 'here', profiles: { here: HERE } });
    expect(readdirSync(dirname(profiles.path))).toEqual(['config.json']);
  });

  it('profiles stay in the file to which a symbolic link points', () => {
    profiles.save('here', HERE);
    const elsewhere = join(folder, 'elsewhere.json');
    renameSync(profiles.path, elsewhere);
    symlinkSync(elsewhere, profiles.path);
    chmodSync(elsewhere, 0o644);
    profiles.save('there', THERE);
    expect(JSON.parse(readFileSync(elsewhere, 'utf8'))).toMatchObject({ current: 'there' });
    expect([lstatSync(profiles.path).isSymbolicLink(), statSync(elsewhere).mode & 0o777]).toEqual([true, 0o600]);
  });

  it('are in the home folder if XDG_CONFIG_HOME is empty', () => {
    expect(new Profiles({ XDG_CONFIG_HOME: '' }).path).toBe(join(homedir(), '.config', 'sluice', 'config.json'));
  });
});

describe('findAccess', () => {
  const keyFile = () => {
    const file = join(folder, 'api-key');
    writeFileSync(file, 'slk_local\n');
    return file;
  };

  it('prefers the environment to a profile, and a profile to the Sluice in this clone', () => {
    const local = { SLUICE_LOCAL_FOLDER: '/clone/.sluice', SLUICE_LOCAL_KEY_FILE: keyFile(), SLUICE_LOCAL_URL: 'http://localhost:4000' };
    expect(findAccess(local, profiles)).toMatchObject({ url: 'http://localhost:4000', key: 'slk_local' });
    expect(findAccess({ ...local, SLUICE_API_KEY: 'slk_env' }, profiles)).toMatchObject({ url: 'http://localhost:4000', key: 'slk_env' });
    expect(findAccess({ ...local, SLUICE_API_KEY: '', SLUICE_URL: '', SLUICE_PROFILE: '' }, profiles)).toMatchObject({ key: 'slk_local' });
    profiles.save('default', HERE);
    expect(findAccess(local, profiles)).toMatchObject(HERE);
    expect(findAccess({ ...local, SLUICE_API_KEY: 'slk_env', SLUICE_URL: 'http://env' }, profiles)).toMatchObject({
      url: 'http://env',
      key: 'slk_env',
    });
    expect(findAccess({ SLUICE_API_KEY_FILE: keyFile() }, profiles)).toMatchObject({ url: HERE.url, key: 'slk_local' });
    expect(findAccess({ SLUICE_API_KEY: 'slk_env' }, profiles, 'default')).toMatchObject(HERE);
  });

  it('accepts a profile whose URL was written by hand, as `sluice login` accepts it', () => {
    profiles.save('default', { ...HERE, url: 'localhost:3000/v1/' });
    expect(findAccess({}, profiles)).toMatchObject({ url: 'http://localhost:3000' });
  });

  it('needs no profiles if the environment has both a URL and a key', () => {
    profiles.save('here', HERE);
    writeFileSync(profiles.path, '{');
    expect(findAccess({ SLUICE_URL: 'http://env', SLUICE_API_KEY: 'slk_env' }, profiles)).toMatchObject({
      url: 'http://env',
      key: 'slk_env',
    });
    expect(() => findAccess({ SLUICE_API_KEY: 'slk_env' }, profiles)).toThrow('cannot be read');
    expect(() => findAccess({ SLUICE_URL: 'http://env', SLUICE_API_KEY: 'slk_env', SLUICE_PROFILE: 'here' }, profiles)).toThrow(
      'cannot be read',
    );
  });

  it('does not read SLUICE_API_KEY_FILE if a profile is chosen', () => {
    profiles.save('here', HERE);
    expect(findAccess({ SLUICE_API_KEY_FILE: join(folder, 'none') }, profiles, 'here')).toMatchObject(HERE);
  });

  it('never sends the key of a profile to another server', () => {
    profiles.save('default', HERE);
    expect(findAccess({ SLUICE_URL: 'http://here:3000/v1/' }, profiles)).toMatchObject(HERE);
    const local = { SLUICE_LOCAL_FOLDER: '/clone', SLUICE_LOCAL_URL: 'http://here:4000', SLUICE_LOCAL_KEY_FILE: keyFile() };
    expect(() => findAccess({ ...local, SLUICE_URL: 'http://elsewhere' }, profiles)).toThrow('there is no API key for http://elsewhere');
  });

  it('knows the server by any form of its URL, and sends the key to the stored one', () => {
    const local = { SLUICE_LOCAL_FOLDER: '/clone', SLUICE_LOCAL_URL: 'http://127.0.0.1:4000', SLUICE_LOCAL_KEY_FILE: keyFile() };
    expect(findAccess({ ...local, SLUICE_URL: 'localhost:4000' }, profiles)).toMatchObject({
      url: 'http://127.0.0.1:4000',
      key: 'slk_local',
    });
    expect(() => findAccess({ ...local, SLUICE_URL: 'localhost:4001' }, profiles)).toThrow('there is no API key');
    profiles.save('default', HERE);
    expect(findAccess({ SLUICE_URL: 'here:3000' }, profiles)).toMatchObject(HERE);
  });

  it('sends no key if the Sluice of this clone is not running', () => {
    expect(() => findAccess({ SLUICE_LOCAL_FOLDER: '/clone/.sluice' }, profiles)).toThrow(
      expect.objectContaining({ message: expect.stringContaining('Sluice is not running in /clone/.sluice: npm start'), code: 5 }),
    );
  });

  it('explains what is missing, and does not show a malformed key', () => {
    expect(() => findAccess({}, profiles)).toThrow('run `sluice login`, or set SLUICE_API_KEY');
    expect(() => findAccess({}, profiles, 'x')).toThrow('there is no profile x: run `sluice login --profile x`');
    expect(() => findAccess({ SLUICE_API_KEY: 'slk_\nsecret' }, profiles)).toThrow(
      /^the API key is malformed: it must consist of visible ASCII characters$/,
    );
    expect(() => findAccess({ SLUICE_API_KEY_FILE: join(folder, 'none') }, profiles)).toThrow('the API key cannot be read');
  });
});

it.each([
  ['localhost:3000', 'http://localhost:3000'],
  ['https://example.com/sluice/v1/', 'https://example.com/sluice'],
  ['http://[::1]:3000/', 'http://[::1]:3000'],
  ['http://sluice.example.com', 'http://sluice.example.com'],
  ['sluice.example.com/v1', 'https://sluice.example.com'],
  ['sluice.example.com:3000', 'https://sluice.example.com:3000'],
  ['10.example.com', 'https://10.example.com'],
  ['203.0.113.7:3000', 'https://203.0.113.7:3000'],
  ['172.32.0.1', 'https://172.32.0.1'],
  ['[2001:db8::1]:3000', 'https://[2001:db8::1]:3000'],
  ...[
    '127.1.2.3:3000',
    '10.0.0.7',
    '192.168.1.7',
    '172.16.0.1',
    '172.31.255.255',
    '[::1]:3000',
    '[fd12::7]',
    'gateway:3000',
    'sluice.cluster.local',
  ].map((host): [string, string] => [host, `http://${host}`]),
])('serverUrl(%s) is %s', (text, url) => {
  expect(serverUrl(text)).toBe(url);
});

it.each([
  ...['htps://secret', 'ftp://secret', 'htps:/secret', 'user:secret@localhost', 'http://', 'localhost:65536', '3000', 'http://3000/v1'].map(
    (text): [string, string] => [text, 'the URL of Sluice must be like http://localhost:3000 or sluice.example.com'],
  ),
  ...['http://user:secret@localhost', 'user@localhost', 'user:1@localhost', 'localhost?a=secret', 'https://localhost/#secret'].map(
    (text): [string, string] => [text, 'the URL of Sluice cannot contain a user, a password, a query or a fragment'],
  ),
])('serverUrl refuses %s, and does not repeat it', (text, message) => {
  expect(() => serverUrl(text)).toThrow(new CliError(message, EXIT.usage));
  expect(() => findAccess({ SLUICE_URL: text }, profiles)).toThrow(message);
});
