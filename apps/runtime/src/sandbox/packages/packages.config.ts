import { choice, Config, integer, text, variable } from '#config';

const listed = (value: string): string[] =>
  value
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');

/** Which packages components may import beside those that are part of Sluice. */
export class PackagesConfig extends Config({
  policy: choice('SLUICE_PACKAGES', {
    words: ['any', 'listed', 'none'],
    fallback: 'any',
    description:
      'npm packages that components may import beside those that are part of Sluice: `any` of the registry that npm is configured for, those in ' +
      '`SLUICE_PACKAGES_LIST` (`listed`), or `none`.',
  }),
  list: variable('SLUICE_PACKAGES_LIST', {
    fallback: '',
    description:
      'Names of npm packages, or whole scopes (`@example/*`), separated by commas: what components may import with `SLUICE_PACKAGES=listed`. ' +
      'A package that is named here is also accepted if it has an install script, which is never executed.',
    parse: listed,
  }),
  /** Read by npm, like all of its settings; declared here for the documentation. */
  registry: text('NPM_CONFIG_REGISTRY', {
    fallback: '',
    description:
      "npm's own variable: the registry of the packages that components import. npm's other settings (`NPM_CONFIG_…`, `.npmrc`) are used, too. " +
      'Empty: the registry of npm.',
  }),
  store: text('SLUICE_PACKAGES_STORE', {
    fallback: '',
    description:
      'Folder of the downloaded npm packages. Empty: below the data folder. `sluice component preload` fills it, for machines without a registry. ' +
      'It is emptied when it has more than 1 GiB.',
  }),
  downloadedBytesPerDay: integer('SLUICE_MAX_PACKAGE_DOWNLOAD_BYTES', {
    fallback: 2 ** 31,
    min: 1,
    description:
      'Bytes of packages that one account may download in a day, from each replica of the runtime; then components that need packages are 429. ' +
      'An installation that has begun is completed.',
  }),
}) {}

/** Whether the operator has named this package, or its scope. */
export function isListed(name: string, list: string[]): boolean {
  return list.some((entry) => entry === name || (entry.endsWith('/*') && name.startsWith(entry.slice(0, -1))));
}
