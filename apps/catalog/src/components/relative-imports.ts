const patterns = [
  /\bfrom\s*(["'])(\.{1,2}\/[^"'\n]+)\1/g,
  /\bimport\s*\(?\s*(["'])(\.{1,2}\/[^"'\n]+)\1/g,
  /\brequire\s*\(\s*(["'])(\.{1,2}\/[^"'\n]+)\1/g,
];

/**
 * The neighbours that a file may import, as it writes them (`../github.app.mjs`), each once. It reads text, not JavaScript: one in a comment is
 * found too, so that a file which cannot be fetched is no error until the bundler misses it.
 */
export function relativeImports(code: string): string[] {
  return [...new Set(patterns.flatMap((pattern) => [...code.matchAll(pattern)].map((match) => match[2]!)))];
}

/** The files that a specifier may mean, in the order in which they're tried. */
export function candidates(specifier: string): string[] {
  if (/\.(?:m?js|cjs|m?ts|json)$/.test(specifier)) return [specifier];
  return ['.mjs', '.js', '.ts', '/index.mjs', '/index.js'].map((ending) => specifier.replace(/\/$/, '') + ending);
}
