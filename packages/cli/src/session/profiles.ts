import { closeSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { shortensAddress } from './addresses.js';
import { CliError, EXIT, usageError } from './errors.js';
import { replaceFile, utf8 } from './files.js';

/** An account at an instance of Sluice. */
export interface Profile {
  url: string;
  key: string;
}

interface ProfileFile {
  /** The profile to use unless another one is chosen. */
  current: string;
  profiles: Record<string, Profile>;
}

type Environment = Record<string, string | undefined>;

/** Where the account in use comes from, for people. */
export interface Access extends Profile {
  from: string;
}

export const DEFAULT_URL = 'http://localhost:3000';

/** A change takes milliseconds. */
const LOCKED_MS = 5000;
const RETRY_MS = 10;

function parsed(text: string): Partial<ProfileFile> | null {
  try {
    return JSON.parse(text) as Partial<ProfileFile> | null;
  } catch {
    // the message of the error would show a part of the key
    throw new Error('it is not JSON');
  }
}

/** Throws an error whose message is the reason. */
function profilesIn(text: string): ProfileFile {
  const { current, profiles } = parsed(text) ?? {};
  if (typeof current !== 'string' || typeof profiles !== 'object' || profiles === null)
    throw new Error('it must contain profiles, and which of them is current');
  const isProfile = (each: Partial<Profile> | null) => typeof each?.url === 'string' && typeof each.key === 'string';
  if (!Object.values(profiles).every(isProfile)) throw new Error('each profile must have a url and a key');
  return { current, profiles };
}

/** The profiles of this user, in a file that only the user can read. */
export class Profiles {
  readonly path: string;

  constructor(
    env: Environment,
    private readonly lockedMs = LOCKED_MS,
  ) {
    this.path = join(env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'sluice', 'config.json');
  }

  read(): ProfileFile {
    try {
      return profilesIn(utf8(readFileSync(this.path), 'it'));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { current: 'default', profiles: {} };
      throw new CliError(
        `${this.path} cannot be read: ${(error as Error).message}; correct it, or delete it and run \`sluice login\` again`,
      );
    }
  }

  /** The profile of this name, or else the current one. */
  find(wanted?: string): { name: string; profile: Profile | undefined } {
    const { current, profiles } = this.read();
    const name = wanted ?? current;
    return { name, profile: Object.hasOwn(profiles, name) ? profiles[name] : undefined };
  }

  save(name: string, profile: Profile): void {
    this.change(({ profiles }) => ({ current: name, profiles: { ...profiles, [name]: profile } }));
  }

  use(name: string): void {
    this.change((file) => {
      this.known(file, name);
      return { ...file, current: name };
    });
  }

  delete(name: string): void {
    this.change((file) => {
      this.known(file, name);
      const { [name]: _, ...profiles } = file.profiles;
      return { current: file.current === name ? (Object.keys(profiles)[0] ?? 'default') : file.current, profiles };
    });
  }

  private known({ profiles }: ProfileFile, name: string): void {
    if (!Object.hasOwn(profiles, name))
      throw new CliError(`there is no profile ${name}; known are ${Object.keys(profiles).join(', ') || 'none'}`, EXIT.notFound);
  }

  /** Commands that run at the same time change the file one after the other: otherwise one would undo the change of another. */
  private change(changed: (file: ProfileFile) => ProfileFile): void {
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
    const lock = `${this.path}.lock`;
    this.acquire(lock);
    try {
      replaceFile(this.path, `${JSON.stringify(changed(this.read()), null, 2)}\n`, 0o600);
    } finally {
      rmSync(lock, { force: true });
    }
  }

  private acquire(lock: string): void {
    for (const until = Date.now() + this.lockedMs; ;) {
      try {
        return closeSync(openSync(lock, 'wx'));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
        if (Date.now() > until) throw new CliError(`${lock} exists: another command changes the profiles; if none does, delete it`);
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
      }
    }
  }
}

/** The name of the profile that was chosen; undefined if none was: an empty variable counts as absent. */
export const wantedProfile = (env: Environment, profileName: string | undefined): string | undefined =>
  profileName ?? (env.SLUICE_PROFILE || undefined);

/**
 * The account to use: of the environment (SLUICE_API_KEY or SLUICE_API_KEY_FILE, with SLUICE_URL), of a profile, or of the Sluice that
 * `npm start` runs in this clone (SLUICE_LOCAL_URL and SLUICE_LOCAL_KEY_FILE; SLUICE_LOCAL_FOLDER alone if none is running). A key of a profile is sent only
 * to the URL of that profile, and that of an instance only to that instance.
 */
export function findAccess(environment: Environment, profiles: Profiles, profileName?: string): Access {
  // as in the configuration of the services, an empty variable counts as absent
  const env: Environment = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const wantedUrl = env.SLUICE_URL === undefined ? undefined : serverUrl(env.SLUICE_URL);
  const wanted = wantedProfile(env, profileName);
  const inEnvironment = wanted === undefined ? (env.SLUICE_API_KEY ?? readKey(env.SLUICE_API_KEY_FILE)) : undefined;
  if (inEnvironment !== undefined)
    return {
      // with SLUICE_URL, a file of profiles that cannot be read does not matter
      url: wantedUrl ?? serverUrl(profiles.find().profile?.url ?? env.SLUICE_LOCAL_URL ?? DEFAULT_URL),
      key: checked(inEnvironment),
      from: 'the environment',
    };
  const { name, profile } = profiles.find(wanted);
  if (wanted !== undefined && !profile)
    throw new CliError(`there is no profile ${wanted}: run \`sluice login --profile ${wanted}\``, EXIT.auth);
  if (profile && (wantedUrl === undefined || sameServer(wantedUrl, profile.url)))
    return { url: serverUrl(profile.url), key: checked(profile.key), from: `the profile ${name}` };
  const isLocal = wantedUrl === undefined || (env.SLUICE_LOCAL_URL !== undefined && sameServer(wantedUrl, env.SLUICE_LOCAL_URL));
  if (isLocal && env.SLUICE_LOCAL_FOLDER !== undefined) {
    if (env.SLUICE_LOCAL_URL === undefined)
      throw new CliError(
        `Sluice is not running in ${env.SLUICE_LOCAL_FOLDER}: npm start; for another one, run \`sluice login\`, or set SLUICE_API_KEY`,
        EXIT.unreachable,
      );
    const local = readKey(env.SLUICE_LOCAL_KEY_FILE, { optional: true });
    if (local !== undefined) return { url: env.SLUICE_LOCAL_URL, key: checked(local), from: 'npm start in this clone' };
  }
  throw new CliError(`there is no API key${wantedUrl ? ` for ${wantedUrl}` : ''}: run \`sluice login\`, or set SLUICE_API_KEY`, EXIT.auth);
}

function readKey(file: string | undefined, { optional = false } = {}): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (optional) return undefined;
    throw new CliError(`the API key cannot be read: ${(error as Error).message}`, EXIT.auth);
  }
}

/** A key is the value of a header: anything else would fail later, with an error that shows it. */
function checked(key: string): string {
  if (!/^[\x21-\x7e]+$/.test(key)) throw new CliError('the API key is malformed: it must consist of visible ASCII characters', EXIT.auth);
  return key;
}

/** Whether a key for one URL is for the other one: `localhost` is 127.0.0.1. */
export const sameServer = (a: string, b: string): boolean => withoutName(serverUrl(a)) === withoutName(serverUrl(b));
const withoutName = (url: string): string => url.replace(/(?<=^https?:\/\/)localhost(?=[:/]|$)/, '127.0.0.1');

/** Hosts of this machine or of its network: names without a public domain, such as localhost, and loopback and private addresses. */
const NEARBY =
  /^([^.:]+|.+\.(localhost|local|internal)|127\.[\d.]+|10\.[\d.]+|192\.168\.[\d.]+|172\.(1[6-9]|2\d|3[01])\.[\d.]+|\[(::1|f[cd][\da-f:]+)\])$/;

/**
 * The URL of an instance, without the version. A key is not sent to another network in clear text unless the text contains `http:`. Throws a usage error that
 * does not show the text, which may contain a password.
 */
export function serverUrl(text: string): string {
  const hasScheme = /^https?:/i.test(text);
  // in front of a colon without a port is another scheme, or a user
  const isHost = !/^[^/?#[]*:(?!\d)/.test(text);
  const url = hasScheme || isHost ? URL.parse(hasScheme ? text : `http://${text}`) : null;
  if (!url || shortensAddress(text, url)) throw usageError('the URL of Sluice must be like http://localhost:3000 or sluice.example.com');
  if (!hasScheme && !NEARBY.test(url.hostname)) return serverUrl(`https://${text}`);
  if (url.username !== '' || url.password !== '' || /[?#]/.test(text))
    throw usageError('the URL of Sluice cannot contain a user, a password, a query or a fragment');
  return url.href.replace(/\/+$/, '').replace(/\/v1$/, '');
}
