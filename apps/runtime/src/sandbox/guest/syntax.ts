import type { Node, Options } from 'acorn';
import type { ComponentWarning } from '../sandbox.js';

/** A node of the syntax tree, with whatever fields its kind has. */
export type Syntax = Node & Record<string, unknown>;

export const parserOptions: Options = {
  ecmaVersion: 'latest',
  locations: true,
  allowHashBang: true,
  allowReturnOutsideFunction: true,
  allowAwaitOutsideFunction: true,
};

export function walk(node: Syntax, visit: (node: Syntax) => void): void {
  visit(node);
  forEachChild(node, (child) => walk(child, visit));
}

/** @param visit gets the field of the node in which the child is, too */
export function forEachChild(node: Syntax, visit: (child: Syntax, field: string) => void): void {
  for (const [field, value] of Object.entries(node)) {
    if (Array.isArray(value)) {
      for (const each of value as unknown[]) if (isNode(each)) visit(each, field);
    } else if (isNode(value)) visit(value, field);
  }
}

export function isCallOf(node: Syntax, names: string[]): boolean {
  return (
    node.type === 'CallExpression' && isNode(node.callee) && node.callee.type === 'Identifier' && names.includes(String(node.callee.name))
  );
}

export function isNode(value: unknown): value is Syntax {
  return typeof value === 'object' && value !== null && typeof (value as Syntax).type === 'string';
}

export function warningAt(node: Syntax, message: string): ComponentWarning {
  const { line, column } = node.loc?.start ?? {};
  return { message, line: line ?? null, column: column === undefined ? null : column + 1 };
}
