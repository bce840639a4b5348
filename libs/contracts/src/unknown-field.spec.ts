import { expect, it } from '@jest/globals';
import { unknownField } from './unknown-field.js';

const known = ['component_id', 'component_code', 'name', 'configured_props'];

it.each([
  ['nmae', 'name'],
  ['componentId', 'component_id'],
  ['component-code', 'component_code'],
  ['configured_prop', 'configured_props'],
])('suggests for %j the field %j', (name, nearest) => {
  expect(unknownField(name, known)).toBe(`unknown field ${JSON.stringify(name)}; did you mean ${nearest}?`);
});

it.each(['emitter', '', 'x'.repeat(5000)])('lists the known fields for %j', (name) => {
  expect(unknownField(name, known)).toBe(`unknown field ${JSON.stringify(name.slice(0, 100))}; known are ${known.join(', ')}`);
});
