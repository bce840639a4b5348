import type { PackageImport } from '../sandbox.js';

/** An import that names a package which has to be installed. */
export interface Wanted extends PackageImport {
  name: string;
  range: string | null;
  path: string;
}

/**
 * The dependencies that npm installs, as in a package.json, and the name of each import among them: one range for each name; further ranges of it are
 * installed under other names.
 */
export function dependenciesOf(wanted: Wanted[]): { dependencies: Record<string, string>; names: Map<Wanted, string> } {
  const dependencies: Record<string, string> = {};
  const names = new Map<Wanted, string>();
  const known = new Map<string, string>();
  for (const each of wanted) {
    const range = each.range ?? 'latest';
    const key = `${each.name}@${range}`;
    let name = known.get(key);
    if (name === undefined) {
      const isFirst = !Object.hasOwn(dependencies, each.name);
      name = isFirst ? each.name : `sluice-other-${known.size}`;
      dependencies[name] = isFirst ? range : `npm:${key}`;
      known.set(key, name);
    }
    names.set(each, name);
  }
  return { dependencies, names };
}
