import { usageError } from '../session/errors.js';
import { DEFAULT_URL, serverUrl, wantedProfile } from '../session/profiles.js';
import type { Session } from '../session/session.js';

/** `sluice login [URL]`: stores a key, after it has been accepted. The key is typed or comes from standard input, never from an argument. */
export async function login(session: Session, url: string | undefined, options: { profile?: string }): Promise<void> {
  const profile = wantedProfile(session.env, options.profile) ?? 'default';
  const { SLUICE_URL, SLUICE_LOCAL_URL } = session.env;
  const known = session.profiles.read().profiles[profile]?.url;
  // an empty variable counts as absent
  const address = serverUrl(url ?? (SLUICE_URL || known || SLUICE_LOCAL_URL || DEFAULT_URL));
  const key = session.isInteractive ? await session.ask(`API key for ${address}: `, { hidden: true }) : (await session.stdin()).trim();
  if (key === '') throw usageError('no API key was given: type it, or pipe it to standard input');
  if (!/^[\x21-\x7e]+$/.test(key)) throw usageError('the API key must consist of visible ASCII characters');
  const { data: user } = await session.clientOf({ url: address, key }).getCurrentUser();
  session.profiles.save(profile, { url: address, key });
  session.note(`logged in to ${address} as ${user.email} (profile ${profile}, in ${session.profiles.path})`);
}

/** `sluice logout` */
export function logout(session: Session, { profile }: { profile?: string }): void {
  const name = wantedProfile(session.env, profile) ?? session.profiles.read().current;
  session.profiles.delete(name);
  session.note(`deleted the profile ${name}; its key remains valid: sluice delete key revokes one`);
}

/** The API's value of a quota that does not exist. */
const UNLIMITED = 2_147_483_647;

/** `sluice whoami` */
export async function whoami(session: Session): Promise<void> {
  const { url, from } = session.access;
  const { data } = await session.sluice.getCurrentUser({ query: { exclude: 'api_key' } });
  const shown = Object.entries({ ...data, url, access: from });
  session.item(
    session.format === 'table'
      ? Object.fromEntries(shown.map(([name, value]) => [name, value === UNLIMITED ? 'unlimited' : value]))
      : Object.fromEntries(shown),
  );
}

/** `sluice profile [NAME]`: lists the profiles, or chooses one. */
export function profile(session: Session, name: string | undefined): void {
  if (name !== undefined) {
    session.profiles.use(name);
    return session.note(`using the profile ${name}`);
  }
  const { current, profiles } = session.profiles.read();
  if (Object.keys(profiles).length === 0) session.note('no profiles yet: sluice login stores one');
  session.list(
    Object.entries(profiles).map(([each, { url }]) => ({ name: each, url, current: each === current })),
    [
      ['', (item) => (item.current ? '*' : '')],
      ['NAME', (item) => item.name],
      ['URL', (item) => item.url],
    ],
  );
}
