import { describe, expect, it } from '@jest/globals';
import { withoutTypeImports } from './type-imports.js';

describe('removing the imports of types', () => {
  it.each<[string, string, string]>([
    ['an unused name after another', 'import { a, B } from "x"; a;', 'import { a,   } from "x"; a;'],
    ['an unused name before another', 'import { B, a } from "x"; a;', 'import {    a } from "x"; a;'],
    ['an unused name beside a default', 'import d, { B } from "x"; d;', 'import d, {   } from "x"; d;'],
    ['an unused default beside a name', 'import D, { b } from "x"; b;', 'import    { b } from "x"; b;'],
    ['an unused default beside a namespace', 'import D, * as n from "x"; n;', 'import    * as n from "x"; n;'],
    ['an unused namespace beside a default', 'import d, * as N from "x"; d;', 'import d         from "x"; d;'],
    ['an unused alias', 'import { a as b, c as d } from "x"; a; d;', 'import {         c as d } from "x"; a; d;'],
    [
      'an unused name with comments and a last comma',
      'import { a, // }\n B /* , */ , } from "x"; a;',
      'import { a, // }\n             } from "x"; a;',
    ],
    ['an import without used names', 'f()\nimport D, {\n  B,\n} from "x"\n[1]', 'f()\n;          \n    \n          \n[1]'],
    ['an import of a default alone', 'import D from "x" with { type: "json" };', ';                                       '],
    ['an import of a namespace alone', 'import * as N from "x";', ';                      '],
    ['an import of no names', 'import {} from "x"; a;', ';                   a;'],
    ['an import with many comments', `import ${'/* a */ '.repeat(60)}{ T } from "x"`, `;${' '.repeat(500)}`],
  ])('removes %s', (_, code, expected) => {
    expect(withoutTypeImports(code)).toBe(expected);
    expect(expected).toHaveLength(code.length);
  });

  it.each([
    ['an import for its effects', 'import "x"; import /* { */ "y";'],
    ['a name in an expression', 'import { A } from "x"; new A();'],
    ['a name in a template', 'import { A } from "x"; `${A}`;'],
    ['a name as the value of a member', 'import { A } from "x"; const o = { A };'],
    ['a name as a default', 'import { A } from "x"; const f = ({ b = A }) => b;'],
    ['a name as a computed key', 'import { A } from "x"; class B { [A] = 1 }'],
    ['a name as a base class', 'import { A } from "x"; class B extends A {}'],
    ['a name that is exported', 'import { A } from "x"; export { A as b };'],
    ['a name that is the component', 'import A from "x"; export default A;'],
    ['a name that is shadowed elsewhere', 'import { A } from "x"; function f(A) { return A; } { let A = 1; A; } A;'],
    ['a name in the discriminant of a switch that declares the same', 'import { a } from "x"; switch (a) { case 1: let a; }'],
    ['a name in the parameters of a function that declares the same', 'import { a } from "x"; function f(b = a()) { var a; }'],
    ['a name in a function whose result declares the same', 'import { a } from "x"; (b = a) => function () { var a; };'],
    ['a name in the initial value of a variable of another block', 'import { A } from "x"; { const b = A; } { const A = 1; }'],
  ])('keeps %s', (_, code) => {
    expect(withoutTypeImports(code)).toBe(code);
  });

  it.each([
    ['members', 'a.A; ({ A: 1 }); class B { A = 1; A() {} }'],
    ['labels', 'A: for (;;) break A;'],
    ['exports of other modules', 'export { A } from "y"; export { b as c } from "y"; export * as d from "z";'],
    ['parameters', 'function f({ b: [A = 1] }, ...c) { return A; } (A) => A; ({ m(...A) { A; } });'],
    ['variables of a block', '{ A(); const { A } = b; }'],
    ['variables of a function', 'function f() { A(); if (b) { var A = 1; } }'],
    ['variables of a loop', 'for (const A of b) A; for (let A = 0; ; ) A; for (const A in b) A;'],
    ['variables of a switch', 'switch (b) { case 1: let A = 1; A; }'],
    ['functions and classes', '{ function A() {} A(); } { class A {} new A(); } (class A { b = A }); (function A() { A(); });'],
    ['caught errors', 'try {} catch (A) { A; } try {} catch ({ A }) { A; }'],
    ['static blocks', 'class B { static { var A = 1; A; } }'],
  ])('does not take %s of the same name for its use', (_, code) => {
    expect(withoutTypeImports(`import { A } from "x";\n${code}`)).toBe(`;                     \n${code}`);
  });

  it.each(['import { A } from', 'import { A } from "x"; with (a) b;', `import { A } from "x"; ${'['.repeat(50_000)}`])(
    'returns code that does not parse as it is: %.40s',
    (code) => expect(withoutTypeImports(code)).toBe(code),
  );
});
