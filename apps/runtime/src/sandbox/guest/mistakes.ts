import type { ComponentWarning } from '../sandbox.js';
import { isCallOf, isNode, type Syntax, walk, warningAt } from './syntax.js';

const members = [
  ...['name', 'key', 'version', 'description', 'type', 'props', 'methods', 'hooks', 'dedupe', 'run'],
  ...['concurrency', 'retries', 'additionalProps', 'sampleEmit', 'annotations'],
];
const HTTP = '$.interface.http';
const hooks = ['deploy', 'activate', 'deactivate'];
const scalars = ['string', 'integer', 'boolean', 'object', 'any'];
/** Types whose values are checked when a source is created; the defaults in the code are not. */
const checkedType = /^(string|integer|boolean|object)(\[\])?$/;
const propTypes = [
  ...scalars.flatMap((type) => [type, `${type}[]`]),
  ...['app', HTTP, '$.interface.timer', '$.service.db', 'http_request', 'alert', 'data_store'],
];
/** Of other systems; the catalog explains what to use instead when a source is created. */
const foreignInterfaces = ['$.interface.apphook', '$.interface.email'];
/** Their names in other systems. */
const otherNames = new Map(Object.entries({ number: 'integer', int: 'integer', text: 'string', bool: 'boolean', array: 'string[]' }));

/**
 * Finds mistakes in a component that can run: a member, a hook or a type that is unknown, a hook or a method that is not a function, a prop that hides something, a
 * default of another type, a generator, and a response that the interface does not allow.
 * It looks at object literals only; what code computes is the author's affair.
 */
export function mistakesOf(tree: Syntax): ComponentWarning[] {
  const component = componentOf(tree);
  if (!component) return [];
  const found: ComponentWarning[] = [];
  for (const { name, node, value } of propertiesOf(component)) {
    if (!members.includes(name)) {
      const meant = nearest(name, members);
      if (meant) found.push(warningAt(node, `\`${name}\` is not a member of a component, so it has no effect; did you mean \`${meant}\`?`));
    }
    if (name === 'hooks') found.push(...hookMistakes(value));
    if (name === 'methods') found.push(...methodMistakes(value, node));
    if (name === 'props') found.push(...propMistakes(value), ...nameMistakes(value, component), ...responseMistakes(value, tree));
    if (name === 'run' && value.generator === true)
      found.push(warningAt(node, '`run` is a generator: calling it runs none of its code, so it must be a function or an async function'));
  }
  return found;
}

/** Props that cannot be read, or hide a method: `this` has one member of each name. */
function nameMistakes(props: Syntax, component: Syntax): ComponentWarning[] {
  const methods = attributeOf(component, 'methods');
  const hidden = new Set(methods ? propertiesOf(methods).map(({ name }) => name) : []);
  return propertiesOf(props).flatMap(({ name, node }) => {
    if (name === '$emit') return [warningAt(node, '`props.$emit` cannot be read: `this.$emit` is the function that emits')];
    return hidden.has(name) ? [warningAt(node, `\`props.${name}\` hides \`methods.${name}\`: both would be \`this.${name}\``)] : [];
  });
}

function hookMistakes(value: Syntax): ComponentWarning[] {
  return propertiesOf(value).flatMap(({ name, node, value: hook }) => {
    if (hooks.includes(name))
      return kindOf(hook) === undefined ? [] : [warningAt(node, `\`hooks.${name}\` is not a function, so it is never called`)];
    const meant = nearest(name, hooks);
    const hint = meant ? `did you mean \`${meant}\`?` : `the hooks are ${hooks.join(', ')}`;
    return [warningAt(node, `\`hooks.${name}\` is never called; ${hint}`)];
  });
}

function methodMistakes(value: Syntax, at: Syntax): ComponentWarning[] {
  if ((kindOf(value) ?? 'object') !== 'object') return [warningAt(at, '`methods` is not an object, so there are no methods')];
  return propertiesOf(value)
    .filter(({ value: method }) => kindOf(method) !== undefined)
    .map(({ name, node }) => warningAt(node, `\`methods.${name}\` is not a function, so it cannot be called`));
}

function propMistakes(value: Syntax): ComponentWarning[] {
  return propertiesOf(value).flatMap(({ name, value: definition }) => {
    const type = definition.type === 'Literal' ? definition : attributeOf(definition, 'type');
    if (type?.type !== 'Literal' || typeof type.value !== 'string') return [];
    if (propTypes.includes(type.value)) return defaultMistakes(name, type.value, definition);
    if (foreignInterfaces.includes(type.value))
      return [warningAt(type, `\`props.${name}\`: no source can be created with ${type.value}; use $.interface.http or $.interface.timer`)];
    const meant = otherNames.get(type.value) ?? nearest(type.value, propTypes);
    if (meant) return [warningAt(type, `\`props.${name}\` has the unknown type "${type.value}"; did you mean "${meant}"?`)];
    // types of other systems, such as `$.airtable.baseId`
    if (type.value.startsWith('$.')) return [];
    return [warningAt(type, `\`props.${name}\` has the unknown type "${type.value}", so its values are not checked`)];
  });
}

/** Such a default reaches the code, although the same value of a user would be refused. */
function defaultMistakes(name: string, type: string, definition: Syntax): ComponentWarning[] {
  const value = attributeOf(definition, 'default');
  const [, item, isArray] = checkedType.exec(type) ?? [];
  if (!value || item === undefined) return [];
  // as for users: the options of a text may be numbers
  const isNumeric = item === 'string' && attributeOf(definition, 'options') !== undefined;
  const fits = (node: unknown): boolean => {
    const kind = kindOf(node);
    return kind === undefined || kind === item || (isNumeric && (kind === 'integer' || kind === 'number'));
  };
  const kind = kindOf(value);
  const isFitting = !isArray ? fits(value) : kind === 'array' ? (value.elements as unknown[]).every(fits) : kind === undefined;
  return isFitting ? [] : [warningAt(value, `\`props.${name}\` has the type "${type}", but its default has another type`)];
}

/** The type of a value that is written as a literal; undefined if it is null or the code computes it. */
function kindOf(node: unknown): string | undefined {
  if (!isNode(node)) return undefined;
  switch (node.type) {
    case 'Literal':
      if (typeof node.value === 'number') return Number.isSafeInteger(node.value) ? 'integer' : 'number';
      return ['string', 'boolean'].find((type) => type === typeof node.value);
    case 'UnaryExpression':
      return node.operator === '-' ? kindOf(node.argument) : undefined;
    case 'TemplateLiteral':
      return 'string';
    case 'ArrayExpression':
      return 'array';
    case 'ObjectExpression':
      return 'object';
    default:
      return undefined;
  }
}

/** On HTTP interfaces whose `customResponse` is not true, calls of `respond` throw, and `respondWhenStored` has no effect. */
function responseMistakes(props: Syntax, tree: Syntax): ComponentWarning[] {
  const interfaces = propertiesOf(props).filter(({ value }) => isSilentInterface(value));
  if (interfaces.length === 0) return [];
  const silent = interfaces.map(({ name }) => name);
  const found = interfaces.flatMap(({ name, value }) =>
    propertiesOf(value)
      .filter((attribute) => attribute.name === 'respondWhenStored' && attribute.value.value === true)
      .map(({ node }) => warningAt(node, `\`props.${name}.respondWhenStored\` has no effect without \`customResponse: true\``)),
  );
  walk(tree, (node) => {
    const callee = node.type === 'CallExpression' && isNode(node.callee) ? node.callee : null;
    if (callee?.type !== 'MemberExpression' || memberName(callee) !== 'respond' || !isNode(callee.object)) return;
    const { object } = callee;
    const name = object.type === 'MemberExpression' && (object.object as Syntax).type === 'ThisExpression' ? memberName(object) : undefined;
    if (name !== undefined && silent.includes(name))
      found.push(warningAt(node, `\`this.${name}.respond\` throws, because \`props.${name}\` does not have \`customResponse: true\``));
  });
  return found;
}

/** Whether a prop is an HTTP interface that certainly has no `customResponse`. */
function isSilentInterface(definition: Syntax): boolean {
  if (definition.type === 'Literal') return definition.value === HTTP;
  const [type, customResponse] = [attributeOf(definition, 'type'), attributeOf(definition, 'customResponse')];
  if (type?.type !== 'Literal' || type.value !== HTTP) return false;
  // a spread or a computed name may set it
  if (!customResponse) return propertiesOf(definition).length === (definition.properties as Syntax[]).length;
  return customResponse.type === 'Literal' && !customResponse.value;
}

/** The object literal that the code exports, directly, through `defineComponent` or by the name of a variable. */
function componentOf(tree: Syntax): Syntax | null {
  const body = (tree.body as Syntax[]) ?? [];
  const variables = new Map<string, Syntax>();
  for (const statement of body) {
    if (statement.type !== 'VariableDeclaration') continue;
    for (const { id, init } of statement.declarations as { id: Syntax; init: unknown }[])
      if (id.type === 'Identifier' && isNode(init)) variables.set(String(id.name), init);
  }
  const literal = (value: unknown): Syntax | null => {
    if (!isNode(value)) return null;
    if (value.type === 'ObjectExpression') return value;
    if (value.type === 'Identifier') return literalOf(variables.get(String(value.name)));
    if (isCallOf(value, ['defineComponent', 'defineSource'])) return literal((value.arguments as unknown[])[0]);
    return null;
  };
  const literalOf = (value: Syntax | undefined): Syntax | null => (value && value.type !== 'Identifier' ? literal(value) : null);
  for (const statement of body) {
    if (statement.type === 'ExportDefaultDeclaration') return literal(statement.declaration);
    if (statement.type === 'ExportNamedDeclaration') {
      const specifiers = statement.specifiers as { exported: Syntax; local: Syntax }[];
      const own = specifiers.find(({ exported }) => (exported.name ?? exported.value) === 'default');
      if (own) return literal(own.local);
    }
    const expression = statement.type === 'ExpressionStatement' ? (statement.expression as Syntax) : null;
    if (expression?.type === 'AssignmentExpression' && /^(module\.exports|exports\.default)$/.test(pathOf(expression.left)))
      return literal(expression.right);
  }
  return null;
}

/** `name` of both `x.name` and `x['name']`. */
function memberName({ property, computed }: Syntax): string | undefined {
  const { type, name, value } = property as Syntax;
  if (!computed) return String(name);
  return type === 'Literal' ? String(value) : undefined;
}

function pathOf(value: unknown): string {
  if (!isNode(value)) return '';
  if (value.type === 'Identifier') return String(value.name);
  return value.type === 'MemberExpression' && !value.computed ? `${pathOf(value.object)}.${pathOf(value.property)}` : '';
}

const attributeOf = (definition: Syntax, name: string): Syntax | undefined =>
  propertiesOf(definition).find((each) => each.name === name)?.value;

function propertiesOf(value: Syntax): { name: string; node: Syntax; value: Syntax }[] {
  if (value.type !== 'ObjectExpression') return [];
  return (value.properties as Syntax[]).flatMap((node) => {
    if (node.type !== 'Property' || node.computed) return [];
    const key = node.key as Syntax;
    return [{ name: String(key.name ?? key.value), node: key, value: node.value as Syntax }];
  });
}

/** The name that was most likely meant: at most one edit in three characters away. */
function nearest(name: string, known: string[]): string | undefined {
  const [best] = known
    .map((each) => ({ each, distance: editDistance(name.slice(0, 64).toLowerCase(), each.toLowerCase()) }))
    .filter(({ each, distance }) => distance <= Math.max(1, Math.floor(each.length / 3)))
    .sort((a, b) => a.distance - b.distance);
  return best?.each;
}

/** How many characters must be inserted, deleted or replaced, or neighbours swapped, to turn one text into the other. */
function editDistance(a: string, b: string): number {
  let [before, row] = [[] as number[], Array.from({ length: b.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1), row[j]! + 1, next[j - 1]! + 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) next[j] = Math.min(next[j]!, before[j - 2]! + 1);
    }
    [before, row] = [row, next];
  }
  return row[b.length]!;
}
