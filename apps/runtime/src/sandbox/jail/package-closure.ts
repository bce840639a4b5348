import { readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';

export interface CuratedPackage {
  version: string;
  from: string;
  /** Below the jail's /runner, in the same place as below the project */
  to: string;
}

interface Manifest {
  version: string;
  dependencies?: Record<string, string>;
}

/** The curated packages and all that they depend on, as npm laid them out. */
export async function packageClosure(names: string[]): Promise<CuratedPackage[]> {
  const found = new Map<string, CuratedPackage>();
  let project: string | undefined;
  const visit = async (name: string, importer: string): Promise<void> => {
    const { dir, above, manifest } = await findPackage(name, importer);
    // The first one is a dependency of the project itself, so this is where everything lies
    project ??= above;
    if (found.has(dir)) return;
    found.set(dir, { version: manifest.version, from: dir, to: relative(project, dir) });
    for (const dependency of Object.keys(manifest.dependencies ?? {})) await visit(dependency, dir);
  };
  for (const name of names) await visit(name, import.meta.dirname);
  return [...found.values()].sort((a, b) => (a.to < b.to ? -1 : 1));
}

/** As Node does: in the `node_modules` of the importer's folder, else of the one above, and so on. */
async function findPackage(name: string, importer: string): Promise<{ dir: string; above: string; manifest: Manifest }> {
  for (let above = importer; ; above = dirname(above)) {
    const dir = join(above, 'node_modules', name);
    const manifest = await readFile(join(dir, 'package.json'), 'utf8').catch(() => null);
    if (manifest !== null) return { dir, above, manifest: JSON.parse(manifest) as Manifest };
    if (above === dirname(above)) throw new Error(`The package ${name} is not installed`);
  }
}
