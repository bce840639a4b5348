import { forEachChild, isNode, type Syntax } from './syntax.js';

/** Those of the names that the code refers to, other than where a function, a block or a class declares the same name. */
export function referredNames(code: Syntax, names: ReadonlySet<string>): Set<string> {
  const found = new Set<string>();
  const visit = (node: Syntax, hidden: ReadonlySet<string>): void => {
    const { type, name } = node;
    if (type === 'Identifier' && names.has(name as string) && !hidden.has(name as string)) found.add(name as string);
    const hiddenIn = new Map<string, ReadonlySet<string>>();
    forEachChild(node, (child, field) => {
      if (isOtherName(node, field)) return;
      let inField = hiddenIn.get(field);
      if (!inField) {
        const own = namesIn(node, field).filter((each) => names.has(each));
        hiddenIn.set(field, (inField = own.length > 0 ? new Set([...hidden, ...own]) : hidden));
      }
      visit(child, inField);
    });
  };
  visit(code, new Set());
  return found;
}

/** Whether the field contains names of members, labels or exports, or names in another module, which are not variables. */
function isOtherName({ type, computed, source }: Syntax, field: string): boolean {
  switch (field) {
    case 'key':
    case 'property':
      return type === 'MetaProperty' || computed === false;
    case 'specifiers':
      // of `import { a } from "…"` and `export { a } from "…"`
      return isNode(source);
    default:
      return field === 'label' || field === 'exported' || field === 'meta';
  }
}

/** The names that a node declares for what is in this field of it. */
function namesIn(node: Syntax, field: string): string[] {
  switch (node.type) {
    case 'FunctionDeclaration':
    case 'FunctionExpression':
    case 'ArrowFunctionExpression':
      // the values of parameters do not see what the body declares
      return [
        ...namesOf(node.id),
        ...(node.params as Syntax[]).flatMap(namesOf),
        ...(field === 'body' ? hoistedNames(node.body as Syntax) : []),
      ];
    case 'ClassExpression':
      return namesOf(node.id);
    case 'CatchClause':
      return namesOf(node.param);
    case 'StaticBlock':
      return [...hoistedNames(node), ...declaredNames(node.body as Syntax[])];
    case 'BlockStatement':
      return declaredNames(node.body as Syntax[]);
    case 'SwitchStatement':
      return field !== 'cases' ? [] : (node.cases as Syntax[]).flatMap(({ consequent }) => declaredNames(consequent as Syntax[]));
    case 'ForStatement':
      return declaredNames([node.init]);
    case 'ForInStatement':
    case 'ForOfStatement':
      return declaredNames([node.left]);
    default:
      return [];
  }
}

function declaredNames(statements: unknown[]): string[] {
  return statements.filter(isNode).flatMap(({ type, id, declarations }) => {
    if (type === 'VariableDeclaration') return (declarations as Syntax[]).flatMap((each) => namesOf(each.id));
    return type === 'FunctionDeclaration' || type === 'ClassDeclaration' ? namesOf(id) : [];
  });
}

/** The names that `var` declares anywhere in a function, except in functions inside it. */
function hoistedNames(node: Syntax): string[] {
  if (/Function/.test(node.type)) return [];
  const found = node.type === 'VariableDeclaration' && node.kind === 'var' ? declaredNames([node]) : [];
  forEachChild(node, (child) => {
    if (child.type !== 'StaticBlock') found.push(...hoistedNames(child));
  });
  return found;
}

/** The names that a pattern binds: `a`, `{ a, b: [c = 1] }`, `...d`. */
function namesOf(pattern: unknown): string[] {
  if (!isNode(pattern)) return [];
  switch (pattern.type) {
    case 'Identifier':
      return [pattern.name as string];
    case 'ObjectPattern':
      return (pattern.properties as Syntax[]).flatMap((each) => namesOf(each.value ?? each));
    case 'ArrayPattern':
      return (pattern.elements as unknown[]).flatMap(namesOf);
    case 'AssignmentPattern':
      return namesOf(pattern.left);
    case 'RestElement':
      return namesOf(pattern.argument);
    default:
      return [];
  }
}
