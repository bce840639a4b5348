const SPECIFIER = /(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)(["'])(\.{1,2}\/[^"'\n]*)\1/g;
const COMMENT = /\/\*[\s\S]*?\*\/|(^|[^:"'`\\])\/\/[^\n]*/g;

/**
 * What a file imports by relative path. It's a look and not a parse: a path in a string that looks like an import is
 * fetched for nothing, and the bundler decides.
 */
export function relativeImports(code: string): string[] {
  return [...new Set([...code.replace(COMMENT, '$1').matchAll(SPECIFIER)].map(([, , specifier]) => specifier ?? ''))];
}

/** The files that a specifier may mean, in the order in which they're tried. */
export function candidates(specifier: string): string[] {
  if (/\.(?:m?js|cjs|m?ts|json)$/.test(specifier)) return [specifier];
  return ['.mjs', '.js', '.ts', '/index.mjs', '/index.js'].map((ending) => specifier.replace(/\/$/, '') + ending);
}
