import type { Node } from 'acorn';
import type { ComponentWarning } from '../sandbox.js';

/** A node of the syntax tree, with whatever fields its kind has. */
export type Syntax = Node & Record<string, unknown>;

export function walk(node: Syntax, visit: (node: Syntax) => void): void {
  visit(node);
  for (const value of Object.values(node)) {
    if (Array.isArray(value)) (value as unknown[]).filter(isNode).forEach((each) => walk(each, visit));
    else if (isNode(value)) walk(value, visit);
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
