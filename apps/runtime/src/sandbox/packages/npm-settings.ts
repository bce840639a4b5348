import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { readFile } from 'node:fs/promises';
import { withoutBrackets } from '#egress';
import { findProgram } from '../jail/command-line.js';
import { installedPackage } from '../jail/jail-root-parts.js';

/** The settings of npm on this machine that an installation needs. */
export interface NpmSettings {
  /** A settings file with the registries, their credentials and proxies, and nothing else */
  npmrc: string;
  /** PEM of the certificate authorities; null: npm's own */
  authorities: string | null;
  /** The registries and proxies: all that an installation may connect to */
  hosts: { host: string; port: number }[];
  registry: string;
}

/** The part of npm's own reader of settings that is used here; npm's version is pinned. */
interface NpmConfig {
  load(): Promise<void>;
  get(key: string): unknown;
  data: Map<string, { data: Record<string, unknown> }>;
}

const kept = ['registry', 'proxy', 'https-proxy', 'noproxy', 'strict-ssl', 'replace-registry-host', 'before', 'min-release-age'];
const scopeRegistry = /^@[^:]+:registry$/;
const credential = /^\/\/.+:(?:_authToken|_auth|username|_password|email)$/;

/**
 * Reads npm's settings as npm does: the environment (`NPM_CONFIG_…`), the user's `.npmrc`, and the one of the npm that is installed on this machine.
 * @throws Error if a file cannot be read, or a registry's address is not a URL
 */
export async function readNpmSettings(env: NodeJS.ProcessEnv = process.env): Promise<NpmSettings> {
  const config = await load(env);
  const names = new Set([...config.data.values()].flatMap(({ data }) => Object.keys(data)));
  const wanted = [...names].filter((name) => kept.includes(name) || scopeRegistry.test(name) || credential.test(name));
  const settings = new Map(wanted.map((name) => [name, config.get(name)]));
  for (const [name, variables] of [
    ['proxy', ['HTTP_PROXY', 'http_proxy', 'PROXY', 'proxy']],
    ['https-proxy', ['HTTPS_PROXY', 'https_proxy']],
    ['noproxy', ['NO_PROXY', 'no_proxy']],
  ] as const)
    if (!settings.get(name))
      settings.set(
        name,
        variables.map((variable) => env[variable]).find((value) => value),
      );
  const given = [...settings].filter(([, value]) => value !== undefined && value !== null && value !== '');
  const addresses = given.filter(([name]) => ['registry', 'proxy', 'https-proxy'].includes(name) || scopeRegistry.test(name));
  return {
    npmrc: given.map(([name, value]) => `${name}=${JSON.stringify(String(value))}\n`).join(''),
    authorities: await authoritiesOf(config, env),
    hosts: addresses.map(([name, value]) => hostOf(name, String(value))),
    registry: String(config.get('registry')),
  };
}

async function load(env: NodeJS.ProcessEnv): Promise<NpmConfig> {
  const npm = join((await installedPackage('npm')).from, 'package.json');
  const partOfNpm = createRequire(npm);
  const Config = partOfNpm('@npmcli/config') as new (options: object) => NpmConfig;
  const definitions = partOfNpm('@npmcli/config/lib/definitions') as object;
  // The settings that people have are those of the npm in their PATH
  const program = findProgram('npm');
  const config = new Config({
    ...definitions,
    npmPath: dirname(npm),
    env: { ...env },
    argv: [],
    execPath: program ? join(dirname(program), 'node') : process.execPath,
  });
  await config.load();
  return config;
}

async function authoritiesOf(config: NpmConfig, env: NodeJS.ProcessEnv): Promise<string | null> {
  const ca = config.get('ca') as string | string[] | null;
  const own = ca?.length
    ? [ca].flat()
    : typeof config.get('cafile') === 'string'
      ? [await readFile(String(config.get('cafile')), 'utf8')]
      : null;
  const extra = env.NODE_EXTRA_CA_CERTS ? [await readFile(env.NODE_EXTRA_CA_CERTS, 'utf8')] : [];
  if (own === null && extra.length === 0) return null;
  return [...(own ?? rootCertificates), ...extra].join('\n');
}

function hostOf(name: string, value: string): { host: string; port: number } {
  if (!URL.canParse(value)) throw new Error(`npm's setting ${name} is not a URL`);
  const { protocol, hostname, port } = new URL(value);
  return { host: withoutBrackets(hostname), port: Number(port) || (protocol === 'http:' ? 80 : 443) };
}
