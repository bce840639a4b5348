import { subset, validRange } from 'semver';
import { isStorable } from '../wire/names.js';

/** The package that an import requests. */
export interface PackageSpecifier {
  name: string;
  /** A version, a range or a tag, as npm reads it; null: the newest */
  range: string | null;
  /** The path after the name, with its slash: `/plugin/utc`, or nothing */
  path: string;
}

const namePattern = /^(?:@[a-z0-9~-][\w.~-]*\/)?[a-z0-9~_-][\w.~-]*$/i;
const longestName = 214;
// Reading one takes time in proportion, on the thread that serves all accounts
const longestRange = 64;

/** Reads `luxon`, `luxon@3.4.4`, `@octokit/core@^6`, `lodash@4/get` and `lodash/get@4`. Returns null for anything that is not a package. */
export function readSpecifier(specifier: string): PackageSpecifier | null {
  const [, name, early, path = '', late] = /^((?:@[^/@]+\/)?[^/@]+)(?:@([^/]+))?((?:\/[^@]*)?)(?:@([^/]+))?$/.exec(specifier) ?? [];
  if (name === undefined || name.length > longestName || !namePattern.test(name) || (early !== undefined && late !== undefined))
    return null;
  const range = early ?? late ?? null;
  if (range !== null && range.length > longestRange) return null;
  if (range !== null && validRange(range) === null && !/^[a-z][\w.-]*$/i.test(range)) return null;
  if (!isStorable(path) || path.split('/').some((part) => part === '..' || part === '.')) return null;
  return { name, range, path };
}

/** npm keeps packages as properties of plain objects: it fails at names that every object has, such as `constructor` and `__proto__`. */
export const isInstallable = (name: string): boolean => !(name in Object.prototype);

/** Whether a version that is there does what a range asks for. A tag never is: only the registry knows what it means. */
export function isSatisfied(range: string | null, version: string): boolean {
  return range === null || (validRange(range) !== null && subset(version, range));
}
