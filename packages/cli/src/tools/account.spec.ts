import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Profiles } from '../session/profiles.js';
import type { Session } from '../session/session.js';
import { login, logout } from './account.js';

let folder: string;
let session: Session;
const WORK = { url: 'http://work', key: 'slk_work' };
const HOME = { url: 'http://home', key: 'slk_home' };

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-account-'));
  const profiles = new Profiles({ XDG_CONFIG_HOME: folder });
  session = {
    ...{ profiles, env: {}, isInteractive: false, note: () => {}, stdin: async () => 'slk_new\n' },
    clientOf: () => ({ getCurrentUser: async () => ({ data: { email: 'a@b.c' } }) }),
  } as unknown as Session;
  profiles.save('work', WORK);
  profiles.save('default', HOME);
  profiles.use('work');
});
afterEach(() => rmSync(folder, { recursive: true }));

const stored = () => session.profiles.read().profiles;

describe.each([
  ['--profile', { profile: 'work' }, 'default'],
  ['SLUICE_PROFILE', {}, 'work'],
])('with the profile of %s', (_, options, variable) => {
  beforeEach(() => void Object.assign(session.env, { SLUICE_PROFILE: variable }));

  it('login changes the key of this profile only, and keeps its URL', async () => {
    await login(session, undefined, options);
    expect(stored()).toEqual({ default: HOME, work: { ...WORK, key: 'slk_new' } });
  });

  it('logout deletes only the profile that the option or the variable chooses', () => {
    session.profiles.use('default');
    logout(session, options);
    expect(stored()).toEqual({ default: HOME });
  });
});

it('without a profile, login changes the one called default, and logout deletes the one in use', async () => {
  Object.assign(session.env, { SLUICE_PROFILE: '' });
  logout(session, {});
  await login(session, undefined, {});
  expect(stored()).toEqual({ default: { ...HOME, key: 'slk_new' } });
});
