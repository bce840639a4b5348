import { parse } from 'acorn';
import { referredNames } from './references.js';
import { parserOptions, type Syntax } from './syntax.js';

const gap = String.raw`(?:\s|/\*[^]*?\*/|//.*)*`;
const comments = /\/\*[^]*?\*\/|\/\/.*/g;
const comma = new RegExp(`${gap},?`, 'y');

/**
 * Removes imported names that the code does not use, and imports of which none remains. In TypeScript they may be types, which the imported module does
 * not export; the compiler removes the same ones unless `verbatimModuleSyntax` is set. Everything else keeps its position.
 * @param code TypeScript whose types were removed
 */
export function withoutTypeImports(code: string): string {
  try {
    return withoutUnused(code, parse(code, { ...parserOptions, locations: false, sourceType: 'module' }) as unknown as Syntax);
  } catch {
    // It does not parse as a module, or is nested deeper than the stack
    return code;
  }
}

function withoutUnused(code: string, tree: Syntax): string {
  const imports = (tree.body as Syntax[]).filter(({ type }) => type === 'ImportDeclaration');
  const names = new Set(imports.flatMap(specifiersOf).map(localName));
  const used = referredNames(tree, names);
  const unused = new Set([...names].filter((name) => !used.has(name)));
  let rest = '';
  let at = 0;
  for (const { start, end, text } of imports.flatMap((each) => replacements(code, each, unused))) {
    rest += code.slice(at, start) + text;
    at = end;
  }
  return rest + code.slice(at);
}

interface Replacement {
  start: number;
  end: number;
  /** Of the same length */
  text: string;
}

/** The replacements that remove the unused names of an import, in order. */
function replacements(code: string, declaration: Syntax, unused: ReadonlySet<string>): Replacement[] {
  const blank = (start: number, end: number): Replacement => ({ start, end, text: spaces(code.slice(start, end)) });
  const specifiers = specifiersOf(declaration);
  if (specifiers.every((each) => unused.has(localName(each)))) {
    const { start, end, source } = declaration;
    const clause = code.slice(start, (source as Syntax).start).replace(comments, '');
    // `import "x"`, which is there for its effects
    if (specifiers.length === 0 && !clause.includes('{')) return [];
    // The lines around it remain separate statements
    return [{ start, end, text: `;${spaces(code.slice(start + 1, end))}` }];
  }
  return specifiers.flatMap((each, index): Replacement[] => {
    if (!unused.has(localName(each))) return [];
    // with the comma before it, or with the one after it
    if (each.type === 'ImportNamespaceSpecifier') return [blank(specifiers[index - 1]!.end, each.end)];
    comma.lastIndex = each.end;
    return [blank(each.start, each.end + comma.exec(code)![0].length)];
  });
}

const spaces = (text: string): string => text.replace(/[^\r\n\u2028\u2029]/g, ' ');

const specifiersOf = (declaration: Syntax): Syntax[] => declaration.specifiers as Syntax[];

const localName = ({ local }: Syntax): string => String((local as Syntax).name);
