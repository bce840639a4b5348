import { access, readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';

export interface CuratedPackage {
  version: string;
  from: string;
  /** Below the jail's /runner, in the same place as below the project */
  to: string;
}

const asBoolean = [() => true, () => false] as const;

interface Manifest {
  version: string;
  dependencies?: Record<string, string>;
}

/** The folder of the repository, or of the image, where the packages of components are installed. */
const INSTALLED = 'component-packages';

/** The curated packages and their dependencies, as npm has installed them. */
export async function packageClosure(names: string[]): Promise<CuratedPackage[]> {
  const found = new Map<string, CuratedPackage>();
  const project = await findProject();
  const visit = async (name: string, importer: string): Promise<void> => {
    const { dir, manifest } = await findPackage(name, importer, project);
    if (found.has(dir)) return;
    found.set(dir, { version: manifest.version, from: dir, to: relative(project, dir) });
    for (const dependency of Object.keys(manifest.dependencies ?? {})) await visit(dependency, dir);
  };
  for (const name of names) await visit(name, project);
  return [...found.values()].sort((a, b) => (a.to < b.to ? -1 : 1));
}

/** A package of that folder, without its dependencies. */
export async function installedPackage(name: string): Promise<CuratedPackage> {
  const project = await findProject();
  const { dir, manifest } = await findPackage(name, project, project);
  return { version: manifest.version, from: dir, to: relative(project, dir) };
}

/** Above this file, which may be compiled into `dist/`. */
async function findProject(): Promise<string> {
  for (let above = import.meta.dirname; ; above = dirname(above)) {
    const dir = join(above, INSTALLED);
    if (await access(join(dir, 'package.json')).then(...asBoolean)) return dir;
    if (above === dirname(above)) throw new Error(`The folder ${INSTALLED} does not exist above ${import.meta.dirname}`);
  }
}

/** As Node does: in the `node_modules` of the importer's folder, else of the one above, up to the project. */
async function findPackage(name: string, importer: string, project: string): Promise<{ dir: string; manifest: Manifest }> {
  for (let above = importer; ; above = dirname(above)) {
    const dir = join(above, 'node_modules', name);
    const manifest = await readFile(join(dir, 'package.json'), 'utf8').catch(() => null);
    if (manifest !== null) return { dir, manifest: JSON.parse(manifest) as Manifest };
    if (above === project) throw new Error(`The package ${name} is not installed: run npm ci --prefix ${INSTALLED}`);
  }
}
