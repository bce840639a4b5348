// Two neighbouring quantifiers must not match the same characters: the code comes from strangers, and the time would grow with its square
const patterns = [
  /\bfrom\s*(["'])(\.{1,2}\/[^"'\n]+)\1/g,
  /\bimport\s*(?:\(\s*)?(["'])(\.{1,2}\/[^"'\n]+)\1/g,
  /\brequire\s*\(\s*(["'])(\.{1,2}\/[^"'\n]+)\1/g,
];

/**
 * The neighbours that a file may import, as it writes them (`../github.app.mjs`), each once. It reads text, not JavaScript: one in a comment is
 * found, too, so a file that does not exist is not an error until the bundler misses it.
 */
export function relativeImports(code: string): string[] {
  return [...new Set(patterns.flatMap((pattern) => [...code.matchAll(pattern)].map((match) => match[2]!)))];
}

/** The endings that an import may omit, in the order of the attempts. TypeScript comes before what was compiled from it. */
export const MODULE_ENDINGS = ['.ts', '.mjs', '.js', '.json'];

/** Of files that the bundler can read. */
const ENDING = /\.(?:[cm]?[jt]s|[jt]sx|json|txt)$/;

/** The files that the path of an import may denote, in the order of the attempts. TypeScript imports `x.ts` as `x.js`, by the name of its output. */
export function candidates(path: string): string[] {
  if (ENDING.test(path)) return [...new Set([path, path.replace(/\.([cm]?)js$/, '.$1ts')])];
  const folder = path.replace(/\/$/, '');
  const indexes = MODULE_ENDINGS.map((ending) => `${folder}/index${ending}`);
  return path.endsWith('/') ? indexes : [...MODULE_ENDINGS.map((ending) => path + ending), ...indexes];
}
