import { parse } from 'acorn';
import type { stripTypeScriptTypes } from 'node:module';
import type { CodeOutline, PackageImport } from '../sandbox.js';
import { mistakesOf } from './mistakes.js';
import { isCallOf, isNode, parserOptions, type Syntax, walk } from './syntax.js';
import { withoutTypeImports } from './type-imports.js';

// Reads a component's code without running it. It is a separate program, because only inspections and TypeScript need a parser.

export { withoutTypeImports };

/**
 * Returns nothing about code that cannot be parsed: its evaluation reports why, with the line.
 * @param strip Node's function, whose module is closed by the time that this program is loaded
 */
export function outline(code: string, strip: typeof stripTypeScriptTypes): CodeOutline {
  try {
    const found = parsed(code, strip);
    if (!found) return { imports: [], warnings: [] };
    const [imports, warnings] = [importsOf(found.tree), mistakesOf(found.tree)];
    if (found.isGenerated)
      return { imports: withoutLines(imports), warnings: warnings.map(({ message }) => ({ message, line: null, column: null })) };
    // Clients look up the positions of warnings in the source map of a bundle. The line of an import becomes part of messages
    return { imports: isBundle(code) ? withoutLines(imports) : imports, warnings };
  } catch {
    // Code that is nested deeper than this process's stack
    return { imports: [], warnings: [] };
  }
}

/** The line of what is wrong in JavaScript, or null: it parses, or was generated, so that its lines are not the author's. */
export function lineOfError(code: string): number | null {
  if (isBundle(code)) return null;
  try {
    parse(code, { ...parserOptions, sourceType: 'module' });
  } catch (error) {
    return (error as { loc?: { line: number } }).loc?.line ?? null;
  }
  return null;
}

const isBundle = (code: string): boolean => code.includes('\n//# sourceMappingURL=data:');

const withoutLines = (imports: PackageImport[]): PackageImport[] => imports.map((each) => ({ ...each, line: null }));

/** `isGenerated`: its positions are not those of `code`. */
function parsed(code: string, strip: typeof stripTypeScriptTypes): { tree: Syntax; isGenerated: boolean } | null {
  // Stripped types become spaces, so every position stays the author's
  const stripped = (mode: 'strip' | 'transform') => () => withoutTypeImports(strip(code, { mode }));
  const transformed = stripped('transform');
  for (const attempt of [() => code, stripped('strip'), transformed]) {
    for (const sourceType of ['module', 'script'] as const) {
      try {
        const tree = parse(attempt(), { ...parserOptions, sourceType }) as unknown as Syntax;
        return { tree, isGenerated: attempt === transformed };
      } catch (error) {
        if (error instanceof RangeError) throw error;
      }
    }
  }
  return null;
}

/** Every specifier that the code names literally, each once for `import` and once for `require`. */
function importsOf(tree: Syntax): PackageImport[] {
  const found = new Map<string, PackageImport>();
  const add = (kind: PackageImport['kind'], node: Syntax, source: unknown): void => {
    if (!isNode(source) || source.type !== 'Literal' || typeof source.value !== 'string') return;
    const isStatic = node.type.startsWith('Import') || node.type.startsWith('Export') ? node.type !== 'ImportExpression' : false;
    const key = `${kind} ${source.value}`;
    const known = found.get(key);
    if (known) known.isStatic ||= isStatic;
    else found.set(key, { specifier: source.value, kind, isStatic, line: node.loc?.start.line ?? null });
  };
  walk(tree, (node) => {
    if (node.type === 'ImportDeclaration' || node.type === 'ImportExpression') add('import', node, node.source);
    else if (node.type === 'ExportNamedDeclaration' || node.type === 'ExportAllDeclaration') add('import', node, node.source);
    else if (isCallOf(node, ['require', '__require'])) add('require', node, (node.arguments as unknown[])[0]);
  });
  return [...found.values()];
}
