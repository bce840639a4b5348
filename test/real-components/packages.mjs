import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { inRoot } from '../../scripts/shell/paths.mjs';

const execute = promisify(execFile);
const cache = inRoot('.cache', 'real-components');
const archive = inRoot('apps', 'runtime', 'src', 'real-components', 'pipedream-0.2.2.tgz');
const block = 512;
/** The packages that are part of Sluice: components use them in the versions that it has. */
const shipped = new Set(Object.keys(JSON.parse(readFileSync(inRoot('component-packages', 'package.json'), 'utf8')).dependencies));

/**
 * @typedef {object} Package
 * @property {string} id `name@version`
 * @property {string} licence of the `package.json` of this version
 * @property {Record<string, string>} files text by path
 */

/**
 * The package that is part of the repository, and those that are named, as npm packs them. npm keeps their archives in `.cache`.
 *
 * @param {string[]} specifiers such as `@example/app@1.2.3`
 * @returns {AsyncGenerator<Package>}
 */
export async function* packages(specifiers) {
  yield readPackage(archive);
  if (specifiers.length > 0) await mkdir(cache, { recursive: true });
  for (const specifier of specifiers) {
    const { stdout } = await execute('npm', ['pack', specifier, '--json', '--ignore-scripts', '--pack-destination', cache]);
    const [{ filename }] = JSON.parse(stdout);
    yield readPackage(join(cache, filename));
  }
}

/**
 * @param {string} file
 * @returns {Package}
 */
function readPackage(file) {
  const texts = untar(gunzipSync(readFileSync(file)));
  const { name, version, license, dependencies = {} } = JSON.parse(texts['package.json'] ?? '{}');
  const files = Object.fromEntries(Object.entries(texts).map(([path, text]) => [path, pinned(text, dependencies)]));
  return { id: `${name}@${version}`, licence: typeof license === 'string' ? license : 'none', files };
}

/**
 * Adds versions to the imports of packages. A component of several years ago does not work with the newest version of every package.
 *
 * @param {string} text
 * @param {Record<string, string>} dependencies
 */
function pinned(text, dependencies) {
  return text.replace(/((?:\bfrom|\bimport|\brequire)\s*\(?\s*["'])([^"']+)(?=["'])/g, (all, before, name) =>
    Object.hasOwn(dependencies, name) && !shipped.has(name) ? `${before}${name}@${dependencies[name]}` : all,
  );
}

/** @param {Buffer} tar */
function untar(tar) {
  /** @type {Record<string, string>} */
  const files = {};
  for (let at = 0; at < tar.length && tar[at] !== 0;) {
    const field = (/** @type {number} */ start, /** @type {number} */ length) =>
      tar.toString('utf8', at + start, at + start + length).split('\0', 1)[0] ?? '';
    const path = posix.join(field(345, 155), field(0, 100)).split('/').slice(1).join('/');
    const size = parseInt(field(124, 12), 8);
    if (/\.(?:[cm]?[jt]s|json)$/.test(path)) files[path] = tar.toString('utf8', at + block, at + block + size);
    at += block + Math.ceil(size / block) * block;
  }
  return files;
}

/**
 * @typedef {object} SourceFile
 * @property {string} path in its package
 * @property {string} app
 * @property {string} code of the file and of all neighbours that it imports
 * @property {'keys' | 'oauth' | 'app hook'} needs the credentials that a user has to have
 */

/**
 * The sources of a package: the files in folders `sources`, without those that others import.
 *
 * @param {Package} from
 * @returns {SourceFile[]}
 */
export function sourcesOf({ id, files }) {
  const paths = Object.keys(files).filter((path) => /(?:^|\/)sources\/.*\.(?:m?js|ts)$/.test(path) && !/\.d\.ts$|test-event/.test(path));
  const imported = new Set(Object.keys(files).flatMap((path) => neighboursOf(path, files)));
  return paths
    .filter((path) => !imported.has(path))
    .sort()
    .map((path) => {
      const code = [...withNeighbours(path, files)].map((each) => files[each]).join('\n');
      const app = /([^/]+)\/sources\//.exec(path)?.[1] ?? (id.split('@').at(-2) ?? '').replace(/^.*\//, '');
      return { path, app, code, needs: code.includes('$.interface.apphook') ? 'app hook' : /\boauth_/.test(code) ? 'oauth' : 'keys' };
    });
}

/**
 * @param {string} path
 * @param {Record<string, string>} files
 */
function withNeighbours(path, files) {
  const found = new Set([path]);
  // grows while it is read
  for (const each of found) for (const next of neighboursOf(each, files)) found.add(next);
  return found;
}

/**
 * @param {string} path
 * @param {Record<string, string>} files
 */
function neighboursOf(path, files) {
  return [...(files[path] ?? '').matchAll(/(?:\bfrom|\bimport|\brequire)\s*\(?\s*["'](\.[^"']*)["']/g)].flatMap(([, to = '']) => {
    const target = posix.join(posix.dirname(path), to);
    const candidates = [target, ...['.mjs', '.js', '.ts', '.json', '/index.mjs', '/index.js'].map((ending) => target + ending)];
    return candidates.find((each) => Object.hasOwn(files, each)) ?? [];
  });
}
