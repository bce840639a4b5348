import { mkdir, readFile } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ExplainedError } from '../shell/explained-error.mjs';
import { inRoot, ROOT } from '../shell/paths.mjs';
import { run } from '../shell/run.mjs';
import { writeWhole } from '../shell/whole-file.mjs';
import { node24 } from './node24.mjs';

/** @typedef {'gateway' | 'catalog' | 'routing' | 'event-store' | 'runtime'} App */

/** @type {readonly App[]} */
export const APPS = ['gateway', 'catalog', 'routing', 'event-store', 'runtime'];

const FOLDER = inRoot('dist', 'bundles');

/**
 * The file that an app is started from: its code and that of the packages that it imports.
 * @param {App} app
 */
export const bundleOf = (app) => join(FOLDER, `${app}.js`);

/** The operator's commands that read the modules of a service, which take a second to load one by one. */
const COMMANDS = {
  'gateway-command': inRoot('dist', 'apps', 'gateway', 'src', 'cli.js'),
  'catalog-command': inRoot('dist', 'apps', 'catalog', 'src', 'cli.js'),
  'runtime-command': inRoot('dist', 'apps', 'runtime', 'src', 'cli.js'),
  migrate: inRoot('scripts', 'migrate.mjs'),
};

/**
 * The file of an operator's command, with the packages that it imports.
 * @param {keyof typeof COMMANDS} command
 */
export const commandOf = (command) => join(FOLDER, `${command}.js`);

/** All files that the build writes for these programs. */
export const bundles = () => [...APPS.map(bundleOf), .../** @type {(keyof typeof COMMANDS)[]} */ (Object.keys(COMMANDS)).map(commandOf)];

/** Where Node finds what it has compiled before (`NODE_COMPILE_CACHE`). */
export const COMPILED = inRoot('.cache', 'compiled');

/** Modules that look for files beside them. */
const STAY_IN_PLACE = ['jail-root-parts.js'];
/** Packages that look for files beside them. */
const STAY_INSTALLED = ['@fastify/static', 'swagger-ui-dist'];
/** Parts that packages load, but do not need here: of TypeORM its other drivers, formatted SQL and entities by file name; of class-validator its phone numbers. */
const UNUSED = [
  /[/\\]typeorm[/\\]driver[/\\](?!postgres[/\\]|types[/\\]).*[/\\]/,
  /[/\\]node_modules[/\\](@sqltools[/\\]formatter|tinyglobby|libphonenumber-js)[/\\]/,
];
/** Packages that are CommonJS for Node, but also have ES modules. */
const ES_MODULES = new Map([
  ['rxjs', 'rxjs/dist/esm/index.js'],
  ['rxjs/operators', 'rxjs/dist/esm/operators/index.js'],
  ['class-transformer', 'class-transformer/esm2015/index.js'],
  // @nestjs/mapped-types copies what decorators have stored there
  ['class-transformer/cjs/storage', 'class-transformer/esm2015/storage.js'],
  ['class-transformer/storage', 'class-transformer/esm2015/storage.js'],
  ['class-validator', 'class-validator/esm2015/index.js'],
]);

/** For CommonJS packages, which expect these names. */
const COMMON_JS = `import { createRequire as requireOf } from 'node:module';
const require = requireOf(import.meta.url), __filename = import.meta.filename, __dirname = import.meta.dirname;`;

/**
 * Bundles the compiled apps and commands, each into one file with a source map of our modules.
 * @throws {ExplainedError} when a module cannot be bundled
 */
export async function bundleApps() {
  // Here, because the first start installs it
  const { build, stop } = await import('esbuild');
  const { warnings, outputFiles } = await build({
    write: false,
    absWorkingDir: ROOT,
    entryPoints: { ...Object.fromEntries(APPS.map((app) => [app, inRoot('dist', 'apps', app, 'src', 'main.js')])), ...COMMANDS },
    outdir: FOLDER,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    banner: { js: COMMON_JS },
    // The text of a module stays in the memory of its process. Names are not shortened, for stacks and profiles.
    minifyWhitespace: true,
    legalComments: 'none',
    sourcemap: 'linked',
    sourcesContent: false,
    external: STAY_INSTALLED,
    plugins: [modulesInPlace, lateModules, esModules, librariesInParts, optionalPackages, packagesWithoutMap],
    logLevel: 'silent',
  })
    .catch(({ message }) => {
      throw new ExplainedError(`The apps could not be bundled. ${message}`);
    })
    // otherwise esbuild's process and its 600 MB remain for as long as Sluice runs
    .finally(stop);
  const dropped = warnings.find(({ id }) => id === 'ignored-bare-import');
  if (dropped) throw new ExplainedError(`A module must be listed in WITH_EFFECT of bundles.mjs. ${dropped.text}`);
  await mkdir(FOLDER, { recursive: true });
  // another command may be reading them
  for (const { path, contents } of outputFiles) writeWhole(path, contents, { mode: 0o644 });
}

/**
 * Lets Node store the compiled bundles in {@link COMPILED}. Otherwise, each app compiles its bundle when it is started for the first time, which takes a third of the CPU time of a start, and
 * leaves 5 to 9 MB in its process.
 * @returns {Promise<boolean>} false: the apps have to compile their bundles
 */
export async function compileBundles() {
  // Node compiles all modules before it evaluates the first one, which ends the process.
  const modules = ['data:text/javascript,process.exit()', ...APPS.map((app) => pathToFileURL(bundleOf(app)).href)];
  const program = modules.map((url) => `import ${JSON.stringify(url)};`).join('');
  // Compiled code is only used with the same options of V8, and the apps have none from here.
  const env = { ...process.env, NODE_OPTIONS: undefined, NODE_COMPILE_CACHE: COMPILED };
  const { code } = await run(node24(), ['--input-type=module', '--eval', program], { cwd: ROOT, env });
  return code === 0;
}

/** @type {import('esbuild').Plugin} */
const modulesInPlace = {
  name: 'modules in place',
  setup({ onResolve }) {
    onResolve({ filter: /^\./ }, ({ path, resolveDir }) =>
      STAY_IN_PLACE.includes(basename(path)) ? { path: relative(FOLDER, join(resolveDir, path)), external: true } : undefined,
    );
  },
};

/**
 * With `tls`, Node loads the certificates of all authorities: 4 MB in each process, also if it never connects with TLS. These modules are loaded when something in them is used,
 * and `http` by `require`: an import evaluates all that it exports, such as `WebSocket`, for which Node loads `tls`.
 * @type {import('esbuild').Plugin}
 */
const lateModules = {
  name: 'late modules',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(node:)?(http|https|http2|tls)$/ }, ({ path, namespace }) =>
      namespace === 'late' ? { path, external: true } : { path: path.replace('node:', ''), namespace: 'late' },
    );
    onLoad({ filter: /^http$/, namespace: 'late' }, () => ({ contents: `module.exports = require('node:http');` }));
    onLoad({ filter: /^/, namespace: 'late' }, async ({ path }) => {
      const { default: all } = await import(`node:${path}`);
      const members = Object.keys(all).map((name) => {
        // undici reads these when it is loaded
        const value = name === 'constants' ? JSON.stringify(all[name]) : `require('node:${path}').${name}`;
        return `get ${name}() { return ${value}; }`;
      });
      return { contents: `module.exports = { ${members.join(', ')} };` };
    });
  },
};

/**
 * Of a CommonJS package, each module that imports it would get an object with a getter for each export, and esbuild could leave out nothing: 3 MB in each process.
 * @type {import('esbuild').Plugin}
 */
const esModules = {
  name: 'ES modules',
  setup({ onResolve }) {
    onResolve({ filter: /^(rxjs|class-transformer|class-validator)(\/|$)/ }, ({ path }) => {
      const file = ES_MODULES.get(path);
      if (file === undefined) return { errors: [{ text: `${path} would be a second copy: list it in ES_MODULES of bundles.mjs` }] };
      return { path: inRoot('node_modules', file), sideEffects: false };
    });
  },
};

/** Modules of libraries that have an effect when they are imported: some change kafkajs, one begins a metric at 0. */
const WITH_EFFECT = /^(kafkajs-.*|connection-limits)\.js$/;
const LIBRARIES = inRoot('dist', 'libs');

/**
 * Leaves out the modules of our libraries of which an app uses nothing, with the packages that only they import, such as undici.
 * @type {import('esbuild').Plugin}
 */
const librariesInParts = {
  name: 'libraries in parts',
  setup({ onResolve, resolve }) {
    onResolve({ filter: /^[#.]/ }, async ({ path, pluginData, ...importer }) => {
      if (pluginData === librariesInParts || importer.importer.includes('node_modules')) return undefined;
      const found = await resolve(path, { ...importer, pluginData: librariesInParts });
      return found.path.startsWith(LIBRARIES) && !WITH_EFFECT.test(basename(found.path)) ? { ...found, sideEffects: false } : found;
    });
  },
};

/**
 * Packages import others if they are installed, such as the drivers of other databases.
 * @type {import('esbuild').Plugin}
 */
const optionalPackages = {
  name: 'optional packages',
  setup({ onResolve, resolve }) {
    onResolve({ filter: /^[^.#/]/ }, async ({ path, pluginData, ...importer }) => {
      if (pluginData === optionalPackages || path.startsWith('node:')) return undefined;
      const found = await resolve(path, { ...importer, pluginData: optionalPackages });
      return found.errors.length > 0 ? { path, external: true } : found;
    });
  },
};

/**
 * The map of all packages would occupy ten times the memory of that of our modules: esbuild leaves out a package whose map has nothing in its lines.
 * @type {import('esbuild').Plugin}
 */
const packagesWithoutMap = {
  name: 'packages without map',
  setup({ onLoad }) {
    onLoad({ filter: /[/\\]node_modules[/\\].*\.[cm]?js$/ }, async ({ path }) => {
      const isUnused = UNUSED.some((part) => part.test(path));
      const code = isUnused ? 'module.exports = {};' : withoutOwnRequire(inAscii(await readFile(path, 'utf8')));
      const mappings = `${';'.repeat(code.split('\n').length)}AAAA`;
      const map = Buffer.from(JSON.stringify({ version: 3, sources: ['package'], names: [], mappings })).toString('base64');
      return { contents: `${code}\n//# sourceMappingURL=data:application/json;base64,${map}` };
    });
  },
};

/**
 * esbuild does not follow a `require` that a module creates by itself: the package would be loaded a second time, from `node_modules`. TypeORM, as `@nestjs/typeorm`
 * loads it, would occupy 8 MB of each process.
 * @param {string} code
 */
const withoutOwnRequire = (code) => code.replace(/^const require = createRequire\(import\.meta\.url\);$/m, '');

/**
 * With one character beyond ASCII, the text of a bundle would occupy two bytes per character. esbuild escapes them, except in regular expressions.
 * @param {string} code
 */
const inAscii = (code) =>
  code.replace(/(\\*)([^\0-\x7f])/g, (_, slashes, character) => {
    const before = slashes.length % 2 === 0 ? slashes : slashes.slice(1);
    return `${before}\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
